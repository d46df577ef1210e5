//! The way to a node, and how its refusals are told.

use std::path::{Path, PathBuf};

use tasks::{
    client::{Client, Error, Options},
    service::refusal::Kind,
};

use super::super::node;
use crate::{
    cli::tasks::ConnectArgs,
    config::node::{identity, sockets},
    report::{Exit, Failure},
};

const START_ONE: &str = "start one with `windlass up`";

/// Connects to the node that was named, else to that of this machine.
pub(in crate::commands) async fn open(arguments: &ConnectArgs) -> Result<Client, Failure> {
    let tls = identity(&arguments.identity)?;
    if let Some(address) = &arguments.address {
        let options = Options { address: address.clone(), tls };
        return Client::connect(&options).await.map_err(failure);
    }
    let paths = sockets(node::runtime_dirs());
    let mut refused = None;
    for path in paths.iter().filter(|path| path.exists()) {
        match Client::connect(&Options::unix(path)).await {
            Ok(client) => return Ok(client),
            Err(error) => refused = Some((path, error)),
        }
    }
    Err(refused.map_or_else(|| nobody(&paths), |(path, error)| unanswered(path, error)))
}

fn nobody(paths: &[PathBuf]) -> Failure {
    let places: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let error = anyhow::anyhow!("no node runs on this machine: no {}", places.join(", no "));
    Failure::new(Exit::Unreachable, error)
        .with_hint(format!("{START_ONE}, or name another with -N"))
}

/// A socket may be left over, or be that of another user.
fn unanswered(path: &Path, error: Error) -> Failure {
    let error = anyhow::Error::new(error).context(format!("no node answers at {}", path.display()));
    Failure::new(Exit::Unreachable, error)
        .with_hint(format!("{START_ONE}; if it runs as root, use sudo"))
}

/// What came of a call that was not answered as hoped.
pub(in crate::commands) fn failure(error: Error) -> Failure {
    let (exit, hint) = match &error {
        Error::Address { .. } => (Exit::Usage, "write `-N 127.0.0.1:8080` or `-N unix:///PATH`"),
        Error::Certificates(_) | Error::Tls(_) => {
            (Exit::Usage, "check the files after --cacert, --cert and --key")
        }
        Error::Connect { .. } => (Exit::Unreachable, START_ONE),
        Error::Incomplete { .. } => (Exit::No, "is it a windlass node of this version there?"),
        Error::ShortPrefix { .. } => (Exit::Usage, "write 8 characters of the id, or more"),
        Error::NoTask { .. } => (Exit::No, "`windlass task list` shows all of them"),
        Error::Ambiguous { .. } => (Exit::No, "write more of the id"),
        Error::Refused(refusal) => of_kind(refusal.kind),
    };
    Failure::new(exit, error).with_hint(hint)
}

fn of_kind(kind: Kind) -> (Exit, &'static str) {
    match kind {
        Kind::InvalidArgument => (Exit::Usage, "mend the field that is named"),
        Kind::NotFound => {
            (Exit::No, "`windlass task list` and `windlass nodes` show what there is")
        }
        Kind::AlreadyExists => (Exit::No, "choose another --idempotency-key for another task"),
        Kind::FailedPrecondition => (Exit::No, "`windlass task status` shows how it ended"),
        Kind::Unavailable => (Exit::Unreachable, "try again once the store or the node is back"),
        Kind::DeadlineExceeded => (Exit::No, "ask again: repeating it is safe"),
        Kind::Unauthenticated => {
            (Exit::No, "give --cacert, --cert and --key; `windlass ca issue --client` makes them")
        }
        Kind::ResourceExhausted => (Exit::No, "try again later, or raise the bound of the node"),
        Kind::DataLoss => (Exit::No, "logs are kept for as long as their task, on one node only"),
        Kind::Aborted | Kind::OutOfRange | Kind::Cancelled => (Exit::No, "try again"),
        Kind::Internal => (Exit::No, "the log of the node says more"),
    }
}
