//! `windlass store ignite`: looks after a journal on Apache Ignite.

use journal_ignite::{IgniteJournal, Options, Verified, init};
use serde_json::json;

use crate::{
    cli::{IgniteCommand, IgniteUrlArgs, Output},
    lifecycle::{self, shared_journal},
    report::{self, Outcome},
};

pub(crate) fn run(command: IgniteCommand) -> Outcome {
    match command {
        IgniteCommand::Init { journal, replicas } => {
            let mut options = options(&journal)?;
            options.replicas = replicas;
            create(&options)?;
            warn(&check(options)?);
            report::words("the journal is there; every `store serve` with this URL serves it");
        }
        IgniteCommand::Check(journal) => {
            let allowed = check(options(&journal)?)?;
            warn(&allowed);
            report::words(verdict(&allowed));
        }
        IgniteCommand::Verify { journal, output } => verify(options(&journal)?, output)?,
    }
    Ok(())
}

fn options(arguments: &IgniteUrlArgs) -> Result<Options, lifecycle::Error> {
    shared_journal::options(&arguments.url, arguments.allow_unsafe).map_err(failed)
}

fn create(options: &Options) -> Result<(), lifecycle::Error> {
    init(options).map_err(|source| failed(shared_journal::Error::Create(source.into())))
}

fn open(options: Options) -> Result<IgniteJournal, lifecycle::Error> {
    let opened = IgniteJournal::open(options);
    opened.map_err(|source| failed(shared_journal::Error::Open(source.into())))
}

fn verify(options: Options, output: Output) -> Outcome {
    let verified = open(options)?.verify();
    let verified =
        verified.map_err(|source| failed(shared_journal::Error::Verify(source.into())))?;
    let Verified { revision, keys, changes } = verified;
    match output {
        Output::Table => report::data(&format!(
            "HISTORY and KV agree at revision {revision}: {keys} keys, {changes} changes kept"
        )),
        Output::Json => {
            let data = json!({ "revision": revision.0, "keys": keys, "changes": changes });
            report::data(&data.to_string())
        }
    }
}

/// Opening it is checking it. What could lose acknowledged writes, and was allowed.
fn check(options: Options) -> Result<Vec<String>, lifecycle::Error> {
    open(options).map(|journal| journal.allowed().to_vec())
}

fn warn(allowed: &[String]) {
    for setting in allowed {
        report::words(&format!("warning: {setting}"));
    }
}

fn verdict(allowed: &[String]) -> &'static str {
    match allowed {
        [] => "the settings keep what is acknowledged",
        _ => "what is acknowledged can be lost, which --allow-unsafe allows",
    }
}

fn failed(source: shared_journal::Error) -> lifecycle::Error {
    lifecycle::Error::SharedJournal { source }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Behind a warning that writes can be lost, it said that they are kept.
    #[test]
    fn what_is_allowed_is_not_called_safe() {
        assert!(verdict(&[]).contains("keep"));
        assert!(verdict(&["REPLICAS of zone W".to_owned()]).contains("can be lost"));
    }
}
