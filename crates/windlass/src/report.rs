//! How the binary speaks: data to stdout, words to stderr, and an error as one line with its
//! causes, ended by one `hint:` line and an exit code.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use crate::config;

/// Listed in `--help`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// It did not work, or the answer is no.
    No = 1,
    /// The command line or the configuration is wrong.
    Usage = 2,
    /// Nobody answers at the endpoint.
    Unreachable = 3,
}

/// Why a command failed, and what to do about it.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) error: anyhow::Error,
    pub(crate) hint: Option<String>,
}

pub(crate) type Outcome = Result<(), Failure>;

// === impl Failure ===

impl Failure {
    pub(crate) fn new(exit: Exit, error: impl Into<anyhow::Error>) -> Self {
        Self { exit, error: error.into(), hint: None }
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Prints the failure; the process ends with the code.
    pub(crate) fn report(&self) -> ExitCode {
        words(&format!("error: {:#}", self.error));
        if let Some(hint) = &self.hint {
            words(&format!("hint: {hint}"));
        }
        ExitCode::from(self.exit as u8)
    }
}

impl From<config::Error> for Failure {
    fn from(error: config::Error) -> Self {
        let hint = error.hint();
        Self::new(Exit::Usage, error).with_hint(hint)
    }
}

/// Prints data. A reader that went away (`| head`) is no failure of ours.
pub(crate) fn data(text: &str) -> Outcome {
    match writeln!(io::stdout(), "{text}") {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let error = anyhow::Error::new(error).context("cannot write to stdout");
            Err(Failure::new(Exit::No, error))
        }
        _ => Ok(()),
    }
}

/// Prints words for a person.
#[expect(clippy::print_stderr, reason = "the one place that speaks to a person")]
pub(crate) fn words(text: &str) {
    eprintln!("{text}");
}
