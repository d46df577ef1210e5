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
            check(options)?;
            report::words("the journal is there; every `store serve` with this URL serves it");
        }
        IgniteCommand::Check(journal) => {
            report::words(check(options(&journal)?)?);
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

/// Opening it is checking it. Warns of what could lose acknowledged writes and was allowed, and of nodes
/// that did not tell.
fn check(options: Options) -> Result<&'static str, lifecycle::Error> {
    let journal = open(options)?;
    let (allowed, unknown) = (journal.allowed(), journal.unknown());
    // What is allowed says already that nothing is known of any node.
    for warning in allowed.iter().chain(unknown.iter().filter(|told| !allowed.contains(told))) {
        report::words(&format!("warning: {warning}"));
    }
    Ok(verdict(allowed, unknown))
}

fn verdict(allowed: &[String], unknown: &[String]) -> &'static str {
    match (allowed, unknown) {
        ([], []) => "the settings keep what is acknowledged",
        ([], _) => "the settings keep what is acknowledged, as far as nodes answered",
        _ => "what is acknowledged can be lost, which --allow-unsafe allows",
    }
}

fn failed(source: shared_journal::Error) -> lifecycle::Error {
    lifecycle::Error::SharedJournal { source }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Behind a warning that writes can be lost, it said that they are kept; and of nodes that were down,
    /// that their settings are right.
    #[test]
    fn what_is_allowed_or_unknown_is_not_called_safe() {
        let told = ["REPLICAS of zone W".to_owned()];
        assert!(verdict(&[], &[]).ends_with("acknowledged"));
        assert!(verdict(&[], &told).contains("as far as"));
        assert!(verdict(&told, &[]).contains("can be lost"));
    }
}
