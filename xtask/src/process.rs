//! Runs child processes and says how long a step took.
//!
//! Owns the two ways a child is run: in front of the user, or quietly with its output kept for the
//! error. Never decides what a failure means.

use std::fmt;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// Elapsed time of one step.
pub(crate) struct Stopwatch(Instant);

/// A duration as people read it: `0.4 s`, `3 min 07 s`.
pub(crate) struct Elapsed(Duration);

/// How a quiet child ended.
pub(crate) struct Finished {
    pub(crate) is_success: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

// === impl Stopwatch ===

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "the tool measures its own steps")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(&self) -> Elapsed {
        Elapsed(self.0.elapsed())
    }
}

// === impl Elapsed ===

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        if seconds < 60 {
            write!(f, "{:.1} s", self.0.as_secs_f64())
        } else {
            write!(f, "{} min {:02} s", seconds / 60, seconds % 60)
        }
    }
}

// === impl Finished ===

impl Finished {
    /// The last lines a failed child wrote, which is where tools say why.
    pub(crate) fn last_words(&self) -> String {
        const LINES_MAX: usize = 30;
        let text = if self.stderr.trim().is_empty() { &self.stdout } else { &self.stderr };
        let lines: Vec<&str> = text.trim_end().lines().collect();
        lines[lines.len().saturating_sub(LINES_MAX)..].join("\n")
    }
}

/// Runs in front of the user; true when the child exits with 0.
pub(crate) fn run_in_front(command: &mut Command) -> Result<bool> {
    eprintln!("+ {}", command_line(command));
    let status =
        command.status().with_context(|| format!("cannot start `{}`", command_line(command)))?;
    Ok(status.success())
}

/// Runs without showing anything, keeping what the child wrote.
pub(crate) fn run_quietly(command: &mut Command) -> Result<Finished> {
    let output =
        command.output().with_context(|| format!("cannot start `{}`", command_line(command)))?;
    Ok(Finished {
        is_success: output.status.success(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

pub(crate) fn command_line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_like_speech() {
        assert_eq!(Elapsed(Duration::from_millis(440)).to_string(), "0.4 s");
        assert_eq!(Elapsed(Duration::from_secs(187)).to_string(), "3 min 07 s");
    }

    #[test]
    fn a_failed_child_keeps_its_last_words() {
        let finished =
            run_quietly(Command::new("sh").args(["-c", "echo why >&2; exit 3"])).unwrap();
        assert!(!finished.is_success);
        assert_eq!(finished.last_words(), "why");
    }
}
