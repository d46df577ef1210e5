//! The language of stories: requests and the answers to expect, in one readable text.
//!
//! Owns how stories are read and written; never carries out a command. Whoever replays a story
//! (the keyspace alone, a store, a real etcd) turns each [`Command`] into one call of the etcd API
//! and hands back the [`Answer`].
//!
//! A story is a sequence of steps. A step is a command, a line `----`, and the answer up to the next
//! empty line. Lines that start with `#` before a command are remarks. The commands and their flags
//! are etcdctl's where etcdctl has them:
//!
//! ```text
//! put KEY [VALUE] --lease=ID --prev-kv --ignore-value --ignore-lease
//! get KEY [END] --rev=N --limit=N --order=none|ascend|descend --sort-by=key|version|create|mod|value
//!     --keys-only --count-only --min-mod-rev=N --max-mod-rev=N --min-create-rev=N --max-create-rev=N
//! del KEY [END] --prev-kv
//! compact N --physical
//! grant ID TTL            revoke ID            timetolive ID
//! hashkv --rev=N          watch --rev=N
//! txn
//!   if version|create|mod|value|lease KEY [END] =|!=|<|> WANTED
//!   then COMMAND          (put, get, del, or txn with its lines further in)
//!   else COMMAND
//! ```
//!
//! `watch` means all events of all keys from a revision to the current one, each with what it
//! replaced. `then*129 COMMAND` stands for 129 such lines, `then nothing` for an operation without
//! content. Orders, targets and relations may be given as numbers, to name some that do not exist.
//! Words are bytes: quoted where they hold blanks, with the escapes `\0`, `\n`, `\xNN`, `\"` and `\\`.
//!
//! ```
//! use mvcc::story::{self, Command};
//!
//! let steps = story::parse("# the first write\nput a 1\n----\nrevision 2\n")?;
//! assert!(matches!(&steps[0].command, Command::Put(put) if put.key == "a"));
//! assert_eq!(steps[0].expected, "revision 2\n");
//! # Ok::<(), story::Error>(())
//! ```

mod answer;
mod command;
mod txn;
mod word;

use std::fmt::Write;

pub use answer::Answer;
pub use command::Command;

/// Divides a command from its answer.
const DIVIDER: &str = "----";

/// One command of a story and what it should answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The remarks and empty lines before the command, as they stand.
    pub remarks: String,
    /// The command as it stands.
    pub text: String,
    pub command: Command,
    pub expected: String,
}

/// Where and why a text is no story.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {kind}")]
pub struct Error {
    /// Counted from 1.
    pub line: usize,
    pub kind: ErrorKind,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ErrorKind {
    #[error("no command is called `{0}`")]
    UnknownCommand(String),
    #[error("the command takes no flag `--{0}`")]
    UnknownFlag(String),
    #[error("the command lacks its {0}")]
    Missing(&'static str),
    #[error("`{0}` is one word too many")]
    Surplus(String),
    #[error("`{0}` is no number")]
    NotANumber(String),
    #[error("`{0}` is no {1}")]
    UnknownName(String, &'static str),
    #[error("a quoted word does not end")]
    OpenQuote,
    #[error("a word has an escape that means nothing")]
    BadEscape,
    #[error("`{0}` cannot stand inside a transaction")]
    NotInTxn(String),
    #[error("only a transaction has more than one line")]
    NotATxn,
    #[error("the command has no answer: `----` is missing")]
    NoAnswer,
}

/// Reads a story.
pub fn parse(text: &str) -> Result<Vec<Step>, Error> {
    let mut lines = (1..).zip(text.lines()).peekable();
    let mut steps = Vec::new();
    loop {
        let remarks = taken(&mut lines, |line| line.is_empty() || line.starts_with('#'));
        let command = taken(&mut lines, |line| line != DIVIDER);
        let Some((first, _)) = command.first() else { return Ok(steps) };
        if lines.next().is_none() {
            return Err(Error { line: *first, kind: ErrorKind::NoAnswer });
        }
        let answer = taken(&mut lines, |line| !line.is_empty());
        steps.push(Step {
            remarks: joined(&remarks),
            text: joined(&command),
            command: command::parse(&command)?,
            expected: joined(&answer),
        });
    }
}

/// Writes the story of `steps` with the answers that were given, one for each step. A story whose
/// answers are all as expected is written as it was read.
#[must_use]
pub fn render(steps: &[Step], answers: &[Answer]) -> String {
    let mut text = String::new();
    for (step, answer) in steps.iter().zip(answers) {
        write!(text, "{}{}{DIVIDER}\n{answer}", step.remarks, step.text)
            .expect("a string takes any text");
    }
    text
}

type Line<'t> = (usize, &'t str);

/// The next lines as long as they are `wanted`.
fn taken<'t>(
    lines: &mut std::iter::Peekable<impl Iterator<Item = Line<'t>>>,
    wanted: impl Fn(&str) -> bool,
) -> Vec<Line<'t>> {
    std::iter::from_fn(|| lines.next_if(|(_, line)| wanted(line))).collect()
}

fn joined(lines: &[Line<'_>]) -> String {
    lines.iter().fold(String::new(), |text, (_, line)| text + line + "\n")
}

#[cfg(test)]
mod tests;
