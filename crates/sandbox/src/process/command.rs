//! A command ready to be executed: its words, its streams, its limits.

use std::{io, os::unix::process::CommandExt, path::Path, process};

use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};
use rustix::process::{Pid, Resource, Rlimit, geteuid, getrlimit, setrlimit};

use crate::{Spec, runtime::Stdio};

/// What is left of a spec once the streams are attached.
#[derive(Debug)]
pub(super) struct Command {
    program: String,
    command: process::Command,
}

// === impl Command ===

impl Command {
    pub(super) fn new(spec: &Spec, stdio: Stdio) -> Self {
        let program = spec.argv.first().cloned().unwrap_or_default();
        let mut command = process::Command::new(&program);
        command
            .args(spec.argv.iter().skip(1))
            .env_clear()
            .envs(&spec.env)
            .current_dir(&spec.workdir)
            .stdin(stdio.stdin)
            .stdout(stdio.stdout)
            .stderr(stdio.stderr);
        // Only root can be somebody else. Everybody else's commands run as whoever runs the daemon.
        if geteuid().is_root() {
            command.uid(spec.user.uid).gid(spec.user.gid);
        }
        limit(&mut command, limits(spec));
        Self { program, command }
    }

    pub(super) fn program(&self) -> &str {
        &self.program
    }

    pub(super) fn workdir(&self) -> &Path {
        self.command.get_current_dir().unwrap_or(Path::new("/"))
    }

    /// Executes it; an error means that nothing of it was.
    pub(super) fn spawn(mut self) -> io::Result<Pid> {
        Ok(Pid::from_child(&self.command.spawn()?))
    }
}

/// What can be asked of the kernel without cgroups: per process, so a command of several processes
/// takes several times as much. The number of processes is not limited: the kernel would count all of
/// the user's.
fn limits(spec: &Spec) -> [(Resource, u64); 3] {
    let wanted = [
        (Resource::Core, 0),
        (Resource::Data, spec.limits.memory_bytes),
        (Resource::Fsize, spec.limits.scratch_bytes),
    ];
    // Nobody may raise a limit that is lower already.
    wanted.map(|(resource, most)| {
        (resource, getrlimit(resource).maximum.map_or(most, |held| held.min(most)))
    })
}

#[expect(unsafe_code, reason = "limits and signals must be set between fork and exec")]
fn limit(command: &mut process::Command, limits: [(Resource, u64); 3]) {
    let set = move || {
        // What the shim holds off is not held off for its command.
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
        for (resource, most) in limits {
            setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
        }
        Ok(())
    };
    // SAFETY: after the fork the closure makes system calls on values it owns and nothing else; it
    // allocates nothing and takes no lock.
    unsafe { command.pre_exec(set) };
}
