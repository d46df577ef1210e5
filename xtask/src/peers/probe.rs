//! Asks a program for its version, so that nothing is trusted because of its file name.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process;

/// How a program is asked, and what it must answer. A folder answers with the names of its files that
/// contain the arguments.
#[derive(Debug)]
pub(super) struct Probe {
    pub(super) arguments: &'static [&'static str],
    pub(super) answer: &'static str,
}

// === impl Probe ===

impl Probe {
    /// Fails unless the program starts and gives the expected answer.
    pub(super) fn check(&self, program: &Path) -> Result<()> {
        let said = self.ask(program)?;
        if !is_answered(&said, self.answer) {
            bail!("{} does not report `{}` but:\n{}", program.display(), self.answer, said.trim());
        }
        Ok(())
    }

    /// What the program says of itself; fails when it does not start or exits with an error.
    pub(super) fn ask(&self, program: &Path) -> Result<String> {
        if program.is_dir() {
            return self.list(program);
        }
        let finished = process::run_quietly(Command::new(program).args(self.arguments))?;
        if !finished.is_success {
            bail!("{} {}: {}", program.display(), self.arguments.join(" "), finished.last_words());
        }
        Ok(finished.stdout + &finished.stderr)
    }

    fn list(&self, folder: &Path) -> Result<String> {
        let problem = || format!("cannot list {}", folder.display());
        let mut said = String::new();
        for entry in fs::read_dir(folder).with_context(problem)? {
            let name = entry.with_context(problem)?.file_name().to_string_lossy().into_owned();
            if self.arguments.iter().all(|part| name.contains(part)) {
                said += &format!("{name}\n");
            }
        }
        Ok(said)
    }
}

/// The answer must end where the text goes on with something else: 3.7.1 is not 3.7.10.
fn is_answered(said: &str, answer: &str) -> bool {
    said.match_indices(answer).any(|(at, _)| {
        let rest = &said[at + answer.len()..];
        !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_matches_whole() {
        assert!(is_answered("etcd Version: 3.7.1\nGit SHA: x", "etcd Version: 3.7.1"));
        assert!(is_answered("Kubernetes v1.36.4", "Kubernetes v1.36.4"));
        assert!(!is_answered("etcd Version: 3.7.10", "etcd Version: 3.7.1"));
        assert!(!is_answered("Kubernetes v1.36.4-rc.0", "Kubernetes v1.36.4"));
        assert!(!is_answered("Kubernetes v0.0.0-master+$Format", "Kubernetes v1.36.4"));
    }

    #[test]
    fn a_folder_answers_with_its_files() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a-1.0.jar", "b-1.0.jar"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let probe = |answer| Probe { arguments: &["a-"], answer }.check(folder.path());
        probe("a-1.0.jar").unwrap();
        assert!(probe("b-1.0.jar").is_err());
    }

    #[test]
    fn a_program_that_fails_is_no_answer() {
        let probe = Probe { arguments: &["-c", "echo v1; exit 1"], answer: "v1" };
        assert!(probe.check(Path::new("/bin/sh")).is_err());
        let probe = Probe { arguments: &["-c", "echo v1"], answer: "v1" };
        probe.check(Path::new("/bin/sh")).unwrap();
    }
}
