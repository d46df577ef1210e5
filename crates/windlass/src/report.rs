//! How the binary speaks: data to stdout, words to stderr, and an error as one line with its
//! causes, ended by one `hint:` line and an exit code.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use comfy_table::{Table, presets};
use serde::Serialize;

use crate::config;

/// Cells begin at the margin, and two blanks part them.
const PADDING: (u16, u16) = (0, 2);

/// Listed in `--help`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It did not work, or the answer is no.
    No,
    /// The command line or the configuration is wrong.
    Usage,
    /// Nobody answers at the endpoint.
    Unreachable,
    /// As a task ended.
    Task(u8),
}

/// Why a command failed, and what to do about it.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    /// Absent if the code says it all.
    error: Option<anyhow::Error>,
    hint: Option<String>,
}

pub(crate) type Outcome = Result<(), Failure>;

// === impl Failure ===

impl Failure {
    pub(crate) fn new(exit: Exit, error: impl Into<anyhow::Error>) -> Self {
        Self { exit, error: Some(error.into()), hint: None }
    }

    /// There is nothing to say but the code.
    pub(crate) fn silent(exit: Exit) -> Self {
        Self { exit, error: None, hint: None }
    }

    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    pub(crate) fn with_exit(self, exit: Exit) -> Self {
        Self { exit, ..self }
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Prints the failure; the process ends with the code.
    pub(crate) fn report(&self) -> ExitCode {
        if let Some(error) = &self.error {
            words(&format!("error: {}", in_one_line(error)));
        }
        if let Some(hint) = &self.hint {
            words(&format!("hint: {hint}"));
        }
        ExitCode::from(self.exit.code())
    }
}

// === impl Exit ===

impl Exit {
    fn code(self) -> u8 {
        match self {
            Self::No => 1,
            Self::Usage => 2,
            Self::Unreachable => 3,
            Self::Task(code) => code,
        }
    }
}

impl From<config::Error> for Failure {
    fn from(error: config::Error) -> Self {
        let hint = error.hint();
        Self::new(Exit::Usage, error).with_hint(hint)
    }
}

/// An error and its causes. Errors of other crates often say their cause themselves, or pass one on
/// in the same words: what was said is not said again.
fn in_one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain() {
        let words = cause.to_string();
        if line.ends_with(&words) {
            continue;
        }
        if !line.is_empty() {
            line.push_str(": ");
        }
        line.push_str(&words);
    }
    line
}

/// Prints data. A reader that went away (`| head`) is no failure of ours.
pub(crate) fn data(text: &str) -> Outcome {
    match writeln!(io::stdout(), "{text}") {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(unwritten(error)),
        _ => Ok(()),
    }
}

/// Passes bytes on as they are, to either stream. `false`: nobody reads there any more.
pub(crate) fn bytes(bytes: &[u8], is_stderr: bool) -> Result<bool, Failure> {
    let write = |mut to: Box<dyn Write>| to.write_all(bytes).and_then(|()| to.flush());
    let written =
        if is_stderr { write(Box::new(io::stderr())) } else { write(Box::new(io::stdout())) };
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(unwritten(error)),
    }
}

fn unwritten(error: io::Error) -> Failure {
    Failure::new(Exit::No, anyhow::Error::new(error).context("cannot write the output"))
}

/// A table without lines, as kubectl prints them.
pub(crate) fn table<const COLUMNS: usize>(
    header: [&str; COLUMNS],
    rows: impl IntoIterator<Item = [String; COLUMNS]>,
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header);
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_padding(PADDING);
    }
    table.trim_fmt()
}

pub(crate) fn json<T: Serialize>(answer: &T) -> Result<String, Failure> {
    serde_json::to_string_pretty(answer).map_err(|error| unprintable(error, "JSON"))
}

/// An answer that cannot be said in the format that was asked for.
pub(crate) fn unprintable(error: impl Into<anyhow::Error>, format: &str) -> Failure {
    let error = error.into().context(format!("the answer cannot be written as {format}"));
    Failure::new(Exit::No, error).with_hint("choose another format with -o")
}

/// Prints words for a person.
#[expect(clippy::print_stderr, reason = "the one place that speaks to a person")]
pub(crate) fn words(text: &str) {
    eprintln!("{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_cause_repeats_is_said_once() {
        let check = |error: anyhow::Error, expected: &str| {
            assert_eq!(in_one_line(&error), expected);
        };
        let refused = || anyhow::anyhow!("connection refused").context("tcp connect error");
        check(refused(), "tcp connect error: connection refused");
        check(refused().context("tcp connect error"), "tcp connect error: connection refused");
        check(
            anyhow::anyhow!("not found").context("cannot read `f`: not found"),
            "cannot read `f`: not found",
        );
    }
}
