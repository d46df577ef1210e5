//! `windlass run`: submits a task, attends it, and ends as it did.

mod attend;
mod ending;
mod screen;
mod spec;

use std::ffi::OsString;

use tasks::core::id::TaskId;

use self::{attend::Attendant, ending::Ending};
use super::task::{connect, describe::Described};
use crate::{
    cli::{Output, tasks::RunArgs},
    lifecycle::Signals,
    report::{self, Exit, Failure, Outcome},
};

/// What parts the options from the command.
const SEPARATOR: &str = "--";

/// `line` is the command line as a whole, with the program's name.
pub(crate) async fn run(arguments: RunArgs, line: &[OsString]) -> Outcome {
    if arguments.detach {
        return detach(arguments, line).await;
    }
    // Only the task itself ends with other codes.
    attend(arguments, line).await.map_err(|failure| match failure.exit() {
        Exit::Task(_) | Exit::Usage => failure,
        Exit::No | Exit::Unreachable => failure.with_exit(Exit::Task(ending::FAILED)),
    })
}

async fn detach(arguments: RunArgs, line: &[OsString]) -> Outcome {
    let client = connect::open(&arguments.connect).await?;
    let command = command(arguments.command, line);
    let submitted = client.submit(spec::of(arguments.spec, command)?).await;
    let submitted = submitted.map_err(connect::failure)?;
    match arguments.output {
        Output::Table => report::data(&submitted.id),
        Output::Json => report::data(&report::json(
            &serde_json::json!({"id": submitted.id, "existed": submitted.existed}),
        )?),
    }
}

async fn attend(arguments: RunArgs, line: &[OsString]) -> Outcome {
    let client = connect::open(&arguments.connect).await?;
    // Before the submit: a Ctrl-C from here on is for the task.
    let signals = Signals::listen()?;
    let command = command(arguments.command, line);
    let options = attend::Options { wants_output: !arguments.wait, grace: arguments.spec.grace };
    let submitted = client.submit(spec::of(arguments.spec, command)?).await;
    let id = submitted.map_err(connect::failure)?.id;
    let id: TaskId = id.parse().or(Err(incomplete("the id of the task")))?;
    let attendant = Attendant::new(client, id, signals, &options);
    let ended = attendant.run().await.map_err(|failure| still_there(failure, id))?;
    let task = Described::of(ended)?;
    if arguments.output == Output::Json {
        report::words(&report::json(&task)?);
    }
    Ending::of(&task).into_outcome(id)
}

/// A task needs nobody who waits for it.
fn still_there(failure: Failure, id: TaskId) -> Failure {
    match failure.exit() {
        Exit::Unreachable => {
            let wait = format!("`windlass task wait {id}` waits for it once a node answers");
            failure.with_hint(format!("task {id} does not end with us; {wait}"))
        }
        _ => failure,
    }
}

/// The command as it is meant. A `--` right behind its first word is not part of it (`run ls -- -l`),
/// unless one stood before it (`run -- git -- log`).
fn command(mut typed: Vec<String>, line: &[OsString]) -> Vec<String> {
    let first = line.len().saturating_sub(typed.len());
    let is_parted = first.checked_sub(1).and_then(|before| line.get(before));
    let is_parted = is_parted.is_some_and(|before| before == SEPARATOR);
    if !is_parted && typed.get(1).is_some_and(|second| second == SEPARATOR) {
        typed.remove(1);
    }
    typed
}

fn incomplete(what: &'static str) -> Failure {
    connect::failure(tasks::client::Error::Incomplete { what })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    fn read(line: &str) -> Vec<String> {
        let line: Vec<OsString> =
            line.split_whitespace().map(|word| OsString::from(word.to_owned())).collect();
        match Cli::try_parse_from(&line).unwrap_or_else(|error| panic!("{error}")).command {
            Command::Run(typed) => command(typed.command, &line),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_command_begins_with_its_first_word_or_behind_the_dashes() {
        for (line, expected) in [
            ("windlass run ls", "ls"),
            ("windlass run -- ls -l", "ls -l"),
            ("windlass run ls -l", "ls -l"),
            ("windlass run ls -- -l", "ls -l"),
            ("windlass run -N 127.0.0.2:8080 ls -- -l", "ls -l"),
            ("windlass run -- ls -- -l", "ls -- -l"),
            ("windlass run ls -l -- -a", "ls -l -- -a"),
            ("windlass run ls -- -- -l", "ls -- -l"),
            ("windlass run --memory 64MiB -- sh -c --", "sh -c --"),
            ("windlass run -f --name x -- -odd", "-odd"),
            ("windlass run ls --", "ls"),
            ("windlass run --wait ls --help", "ls --help"),
            ("windlass run --label a=b ls --detach", "ls --detach"),
        ] {
            assert_eq!(read(line).join(" "), expected, "{line}");
        }
    }

    #[test]
    fn an_option_that_does_not_exist_is_no_command() {
        for line in ["run --cpu 1 -- true", "run --memroy 1MiB true", "run -x"] {
            let words = std::iter::once("windlass").chain(line.split_whitespace());
            let error = Cli::try_parse_from(words).unwrap_err();
            assert_eq!(error.kind(), clap::error::ErrorKind::UnknownArgument, "{line}");
        }
    }

    #[test]
    fn one_mode_excludes_the_others() {
        for line in ["run", "run --wait --detach ls", "run -f --wait ls", "run --"] {
            let words = std::iter::once("windlass").chain(line.split_whitespace());
            assert!(Cli::try_parse_from(words).is_err(), "{line}");
        }
    }
}
