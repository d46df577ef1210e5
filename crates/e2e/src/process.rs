//! Real programs as children: started in a process group of their own, stopped with all they
//! started, and killed by a watchdog if the test process dies first.
//!
//! Owns the process and its log file. Never decides when a program is ready: launchers do.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::report::say;
use crate::wait::{Level, wait_for};

/// How long a program may take to end after SIGTERM before it is killed.
const STOP_WAIT: Duration = Duration::from_secs(15);

/// How much of a log is quoted when a program ended on its own.
const LOG_TAIL_BYTES: usize = 4096;

/// Reads until the test process closes the pipe, by dying, then kills the group.
const WATCHDOG: &str = "cat >/dev/null; kill -s KILL -- \"-$0\"";

/// What to start.
#[derive(Clone, Debug)]
pub struct Program {
    /// What the log file is called after.
    pub name: String,
    pub path: PathBuf,
    pub arguments: Vec<String>,
    pub environment: Vec<(String, String)>,
    /// Where the log goes; appended to, so that a restarted program keeps its first words.
    pub log_folder: PathBuf,
}

/// A running program. Dropping it kills its whole group.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    group: Pid,
    watchdog: Child,
    log: PathBuf,
    /// Whether the rest of the group is left to itself.
    is_alone: bool,
}

// === impl Process ===

impl Process {
    pub fn start(program: &Program) -> Result<Self> {
        let log = program.log_folder.join(format!("{}.log", program.name));
        let out = open_log(&log, program)?;
        let child = Command::new(&program.path)
            .args(&program.arguments)
            .envs(program.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(out.try_clone().context("share the log")?)
            .stderr(out)
            .process_group(0)
            .spawn()
            .with_context(|| format!("start {}", program.path.display()))?;
        let group = Pid::from_child(&child);
        let watchdog = start_watchdog(group)?;
        Ok(Self { name: program.name.clone(), child, group, watchdog, log, is_alone: false })
    }

    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// # Errors
    ///
    /// If the program ended, with its status and the end of its log.
    pub fn ensure_alive(&mut self) -> Result<()> {
        let status = self.child.try_wait().context("look at the child")?;
        let ended = status.map(|status| format!("{} ended: {status}\n{}", self.name, self.tail()));
        ensure!(ended.is_none(), "{}", ended.unwrap_or_default());
        Ok(())
    }

    /// The program's log so far.
    pub fn log(&self) -> Result<String> {
        let bytes = fs::read(&self.log).with_context(|| format!("read {}", self.log.display()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The end of the log, for an error that needs it.
    fn tail(&self) -> String {
        let log = self.log().unwrap_or_else(|error| format!("{error:#}"));
        let start = log.len().saturating_sub(LOG_TAIL_BYTES);
        let start = (start..=log.len()).find(|at| log.is_char_boundary(*at)).unwrap_or(start);
        log[start..].to_owned()
    }

    /// SIGKILL to the group, at once: what a power cut is to a process.
    pub fn kill(mut self) -> Result<()> {
        self.signal(Signal::KILL)?;
        self.child.wait().context("wait for the killed child")?;
        Ok(())
    }

    /// SIGTERM, a bounded wait, then SIGKILL to the group. Returns how the program ended.
    pub async fn stop(mut self) -> Result<ExitStatus> {
        self.signal(Signal::TERM)?;
        if let Ok(status) = self.wait_end(STOP_WAIT).await {
            return Ok(status);
        }
        say(&format!("{}: does not end after SIGTERM, killed", self.name));
        self.signal(Signal::KILL)?;
        self.child.wait().context("wait for the killed child")
    }

    /// Waits for a program that is to end by itself.
    pub async fn wait_end(&mut self, bound: Duration) -> Result<ExitStatus> {
        let name = self.name.clone();
        wait_for(&format!("{name} to end"), bound, async || {
            let status = self.child.try_wait().context("look at the child")?;
            Ok(status.map_or_else(|| Level::Below("running".to_owned()), Level::Reached))
        })
        .await
    }

    /// SIGSTOP, and waits until the program stands still: a signal only asks for that, and threads go
    /// on until a processor has time to stop them.
    pub async fn pause(&self) -> Result<()> {
        self.signal(Signal::STOP)?;
        wait_for(&format!("{} to stand still", self.name), STOP_WAIT, async || {
            let running = running_threads(self.id())?;
            Ok(if running == 0 {
                Level::Reached(())
            } else {
                Level::Below(format!("{running} run"))
            })
        })
        .await
    }

    pub fn resume(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    /// Sends a signal to the program alone, not to what it started.
    pub fn signal_alone(&self, signal: Signal) -> Result<()> {
        kill_process(self.group, signal)
            .with_context(|| format!("send {signal:?} to {}", self.name))
    }

    /// SIGKILL to the program alone: what it started goes on without it, and without us.
    pub fn kill_alone(mut self) -> Result<()> {
        self.signal_alone(Signal::KILL)?;
        self.child.wait().context("wait for the killed child")?;
        self.is_alone = true;
        Ok(())
    }

    fn kill_group(&self) -> std::io::Result<()> {
        self.signal(Signal::KILL).map_err(std::io::Error::other)
    }

    /// Sends a signal to the whole group. A group that is gone already is no error.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        match kill_process_group(self.group, signal) {
            Err(error) if error != Errno::SRCH => {
                Err(error).with_context(|| format!("send {signal:?} to {}", self.name))
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Process {
    /// The watchdog goes first: once the child is waited for, its number may be somebody else's.
    fn drop(&mut self) {
        let steps = [
            self.watchdog.kill(),
            self.watchdog.wait().map(drop),
            if self.is_alone { Ok(()) } else { self.kill_group() },
            self.child.wait().map(drop),
        ];
        for error in steps.into_iter().filter_map(Result::err) {
            say(&format!("{}: cannot end it: {error}", self.name));
        }
    }
}

/// Threads of a process that are not stopped.
fn running_threads(process: u32) -> Result<usize> {
    let mut running = 0;
    for thread in fs::read_dir(format!("/proc/{process}/task")).context("list threads")? {
        let stat = thread.context("list threads")?.path().join("stat");
        let stat = match fs::read_to_string(stat) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            stat => stat.context("look at a thread")?,
        };
        // Its name, in brackets, may be anything; its state comes next.
        let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
        running += usize::from(state != Some('T'));
    }
    Ok(running)
}

fn open_log(log: &Path, program: &Program) -> Result<File> {
    let mut file = File::options()
        .create(true)
        .append(true)
        .open(log)
        .with_context(|| format!("open {}", log.display()))?;
    writeln!(file, "$ {} {}", program.path.display(), program.arguments.join(" "))
        .context("write the log's first line")?;
    Ok(file)
}

/// In a group of its own, so that an interrupt at the terminal does not end it with the test.
fn start_watchdog(group: Pid) -> Result<Child> {
    Command::new("/bin/sh")
        .args(["-c", WATCHDOG, &group.as_raw_nonzero().to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .context("start the watchdog")
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    fn sleeper(folder: &Path) -> Program {
        Program {
            name: "sleeper".to_owned(),
            path: "/bin/sh".into(),
            // The shell waits for a child of its own, which must go with it.
            arguments: vec!["-c".to_owned(), "sleep 1000; true".to_owned()],
            environment: Vec::new(),
            log_folder: folder.to_owned(),
        }
    }

    #[tokio::test]
    async fn the_watchdog_kills_the_group_when_the_pipe_closes() {
        let folder = tempfile::tempdir().unwrap();
        let mut process = Process::start(&sleeper(folder.path())).unwrap();
        drop(process.watchdog.stdin.take());
        let status = process.wait_end(STOP_WAIT).await.unwrap();
        assert_eq!(status.signal(), Some(Signal::KILL.as_raw()));
    }

    #[tokio::test]
    async fn a_program_that_ended_is_told_with_its_last_words() {
        let folder = tempfile::tempdir().unwrap();
        let arguments = vec!["-c".to_owned(), "echo last words; exit 3".to_owned()];
        let program = Program { arguments, ..sleeper(folder.path()) };
        let mut process = Process::start(&program).unwrap();
        process.wait_end(STOP_WAIT).await.unwrap();
        let told = process.ensure_alive().unwrap_err().to_string();
        assert!(told.contains("exit status: 3") && told.contains("last words"), "{told}");
    }

    #[tokio::test]
    async fn who_is_paused_stands_still_and_goes_on_when_resumed() {
        let folder = tempfile::tempdir().unwrap();
        let arguments = vec!["-c".to_owned(), "while :; do echo on; done".to_owned()];
        let program = Program { arguments, ..sleeper(folder.path()) };
        let process = Process::start(&program).unwrap();
        process.pause().await.unwrap();
        let written = process.log().unwrap().len();
        crate::wait::pass(Duration::from_millis(100)).await.unwrap();
        assert_eq!(process.log().unwrap().len(), written, "it wrote on");
        process.resume().unwrap();
        wait_for("it to write on", STOP_WAIT, async || {
            let has_grown = process.log()?.len() > written;
            Ok(if has_grown { Level::Reached(()) } else { Level::Below(String::new()) })
        })
        .await
        .unwrap();
    }

    #[tokio::test]
    async fn stopping_is_gentle_first() {
        let folder = tempfile::tempdir().unwrap();
        let process = Process::start(&sleeper(folder.path())).unwrap();
        let status = process.stop().await.unwrap();
        assert_eq!(status.signal(), Some(Signal::TERM.as_raw()));
    }
}
