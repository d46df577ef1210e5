//! What the service is told when it starts: plain data, refused here if it cannot work. Who reads
//! flags and files is the binary.

use std::{net::SocketAddr, time::Duration};

use crate::core::policy::Policy;

/// Nodes worked on at once by one process; more only makes replicas meet at the same locks.
const WORKERS_MAX: usize = 256;

/// Requests under way at once; kube has no bound of its own.
const INFLIGHT_MAX: usize = 1024;

/// Below this, resync would be most of what the service does.
const RESYNC_MIN: Duration = Duration::from_secs(10);

/// Above this, a node that was passed over by an accident waits too long.
const RESYNC_MAX: Duration = Duration::from_hours(24);

/// Labels younger than this are lost when all watchers stop at once and nobody sees the deletion.
const CHECKPOINT_DELAY_MAX: Duration = Duration::from_mins(10);

/// Together with what is put in front of it, an identity is a Lease's name.
const IDENTITY_CHARACTERS_MAX: usize = 63;

/// What Kubernetes allows as a namespace's name.
const NAMESPACE_CHARACTERS_MAX: usize = 63;

/// Everything that can be chosen about one process.
#[derive(Clone, Debug)]
pub struct Options {
    pub role: Role,
    /// This process among its replicas: the holder of locks, and part of a Lease's name. No two
    /// processes may share it.
    pub identity: String,
    pub namespaces: Namespaces,
    /// What is restored, and for how long it is kept.
    pub policy: Policy,
    /// Nodes worked on at once.
    pub workers: usize,
    /// Requests under way at once.
    pub max_inflight: usize,
    pub resync: Duration,
    /// How long labels may be changed before a checkpoint holds them.
    pub checkpoint_delay: Duration,
    /// Where health and metrics are served.
    pub listen: SocketAddr,
    /// Whether the services only say what they would do.
    pub is_dry_run: bool,
}

/// Which services a process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Both,
    Watcher,
    Processor,
}

/// Where things are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespaces {
    pub transactions: String,
    pub metadata: String,
    pub checkpoints: String,
}

/// Why options were refused. Each names the flag, because that is what a person wrote.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("--{flag}: `{name}` is no namespace: 1 to 63 of a-z, 0-9 and `-`, none at the ends")]
    NotANamespace { flag: &'static str, name: String },
    #[error("--{flag} and --{other}: both are `{name}`, but each store needs its own")]
    SharedNamespace { flag: &'static str, other: &'static str, name: String },
    #[error("`{identity}` cannot name a replica: 1 to 63 of a-z, 0-9 and `-`, none at the ends")]
    NotAnIdentity { identity: String },
    #[error("--{flag}: {value} is not between 1 and {max}")]
    CountOutOfRange { flag: &'static str, value: usize, max: usize },
    #[error("--{flag}: {value:?} is not between {min:?} and {max:?}")]
    TimeOutOfRange { flag: &'static str, value: Duration, min: Duration, max: Duration },
}

// === impl Options ===

impl Options {
    /// The defaults, for a process of this identity.
    #[must_use]
    pub fn new(identity: String) -> Self {
        Self {
            role: Role::Both,
            identity,
            namespaces: Namespaces::default(),
            policy: Policy::default(),
            workers: 16,
            max_inflight: 32,
            resync: Duration::from_mins(10),
            checkpoint_delay: Duration::from_secs(5),
            listen: SocketAddr::from(([127, 0, 0, 1], 9180)),
            is_dry_run: false,
        }
    }

    pub fn validate(&self) -> Result<(), Error> {
        self.namespaces.validate()?;
        if !is_dns_label(&self.identity, IDENTITY_CHARACTERS_MAX) {
            return Err(Error::NotAnIdentity { identity: self.identity.clone() });
        }
        check_count("workers", self.workers, WORKERS_MAX)?;
        check_count("max-inflight", self.max_inflight, INFLIGHT_MAX)?;
        check_time("resync", self.resync, RESYNC_MIN, RESYNC_MAX)?;
        let delay = self.checkpoint_delay;
        check_time("checkpoint-delay", delay, Duration::ZERO, CHECKPOINT_DELAY_MAX)
    }
}

// === impl Role ===

impl Role {
    #[must_use]
    pub fn watches(self) -> bool {
        self != Self::Processor
    }

    #[must_use]
    pub fn processes(self) -> bool {
        self != Self::Watcher
    }
}

// === impl Namespaces ===

impl Default for Namespaces {
    fn default() -> Self {
        Self {
            transactions: "node-metadata-transactions".to_owned(),
            metadata: "node-metadata".to_owned(),
            checkpoints: "node-metadata-checkpoints".to_owned(),
        }
    }
}

impl Namespaces {
    #[must_use]
    pub fn all(&self) -> [&str; 3] {
        [&self.transactions, &self.metadata, &self.checkpoints]
    }

    /// They must differ: records, transactions and checkpoints are told apart by where they lie.
    pub fn validate(&self) -> Result<(), Error> {
        let flags = [
            ("transaction-namespace", &self.transactions),
            ("metadata-namespace", &self.metadata),
            ("checkpoint-namespace", &self.checkpoints),
        ];
        for (index, (flag, name)) in flags.into_iter().enumerate() {
            check_namespace(flag, name)?;
            if let Some((other, _)) = flags[..index].iter().find(|(_, other)| *other == name) {
                return Err(Error::SharedNamespace { flag, other, name: name.clone() });
            }
        }
        Ok(())
    }
}

pub(crate) fn check_namespace(flag: &'static str, name: &str) -> Result<(), Error> {
    let is_namespace = is_dns_label(name, NAMESPACE_CHARACTERS_MAX);
    if is_namespace { Ok(()) } else { Err(Error::NotANamespace { flag, name: name.to_owned() }) }
}

fn check_count(flag: &'static str, value: usize, max: usize) -> Result<(), Error> {
    let is_within = (1..=max).contains(&value);
    if is_within { Ok(()) } else { Err(Error::CountOutOfRange { flag, value, max }) }
}

fn check_time(
    flag: &'static str,
    value: Duration,
    min: Duration,
    max: Duration,
) -> Result<(), Error> {
    let is_within = (min..=max).contains(&value);
    if is_within { Ok(()) } else { Err(Error::TimeOutOfRange { flag, value, min, max }) }
}

fn is_dns_label(text: &str, characters_max: usize) -> bool {
    let is_inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    let is_outer = |c: Option<&u8>| c.is_some_and(|c| *c != b'-');
    let bytes = text.as_bytes();
    bytes.len() <= characters_max
        && bytes.iter().all(|c| is_inner(*c))
        && is_outer(bytes.first())
        && is_outer(bytes.last())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(change: impl FnOnce(&mut Options), expected: &str) {
        let mut options = Options::new("replica-1".to_owned());
        change(&mut options);
        let outcome = options.validate().map_or_else(|error| error.to_string(), |()| "ok".into());
        assert_eq!(outcome, expected);
    }

    #[test]
    fn the_defaults_work() {
        check(|_| {}, "ok");
    }

    #[test]
    fn what_cannot_work_is_refused_by_its_flag() {
        check(|options| options.workers = 0, "--workers: 0 is not between 1 and 256");
        check(
            |options| options.max_inflight = 5000,
            "--max-inflight: 5000 is not between 1 and 1024",
        );
        check(
            |options| options.resync = Duration::from_secs(1),
            "--resync: 1s is not between 10s and 86400s",
        );
        check(
            |options| options.checkpoint_delay = Duration::from_secs(601),
            "--checkpoint-delay: 601s is not between 0ns and 600s",
        );
        check(
            |options| options.identity = "a_b".to_owned(),
            "`a_b` cannot name a replica: 1 to 63 of a-z, 0-9 and `-`, none at the ends",
        );
    }

    #[test]
    fn each_store_has_a_namespace_of_its_own() {
        check(
            |options| options.namespaces.metadata = "Meta".to_owned(),
            "--metadata-namespace: `Meta` is no namespace: \
             1 to 63 of a-z, 0-9 and `-`, none at the ends",
        );
        check(
            |options| options.namespaces.checkpoints = "node-metadata".to_owned(),
            "--checkpoint-namespace and --metadata-namespace: both are `node-metadata`, \
             but each store needs its own",
        );
    }
}
