//! What the sharder is told when it starts: plain data, refused here if it cannot work. Who reads
//! flags and files is the binary.

use std::net::SocketAddr;

use crate::core::names::{NameError, RingName};
use crate::manifests::HOME;

/// Requests under way at once; kube has no bound of its own.
const INFLIGHT_MAX: usize = 1024;

/// Enough for one ring to move as many objects as it may by default, and to read besides.
const INFLIGHT_DEFAULT: usize = 128;

const LISTEN_DEFAULT: ([u8; 4], u16) = ([127, 0, 0, 1], 9181);

/// Everything that can be chosen about one process.
#[derive(Clone, Debug)]
pub struct Options {
    /// This process among its replicas: the holder of the election's Lease. No two processes may
    /// share it.
    pub identity: String,
    /// The sharder's own namespace: where the election's Lease is. A ring without a selector leaves
    /// its objects alone.
    pub namespace: String,
    /// Where health and metrics are served.
    pub listen: SocketAddr,
    /// Requests under way at once.
    pub max_inflight: usize,
}

/// Why options were refused. Each names the flag, because that is what a person wrote.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("--sharder-namespace: `{namespace}` is no namespace")]
    NotANamespace {
        namespace: String,
        #[source]
        source: NameError,
    },
    #[error("a replica has to be told from the others: its identity is empty")]
    NoIdentity,
    #[error("--max-inflight: {0} is not between 1 and {INFLIGHT_MAX}")]
    Inflight(usize),
}

// === impl Options ===

impl Options {
    /// The defaults, for a process of this identity.
    #[must_use]
    pub fn new(identity: String) -> Self {
        Self {
            identity,
            namespace: HOME.to_owned(),
            listen: SocketAddr::from(LISTEN_DEFAULT),
            max_inflight: INFLIGHT_DEFAULT,
        }
    }

    pub fn validate(&self) -> Result<(), Error> {
        // Namespaces and rings are named by the same rule.
        if let Err(source) = self.namespace.parse::<RingName>() {
            return Err(Error::NotANamespace { namespace: self.namespace.clone(), source });
        }
        if self.identity.is_empty() {
            return Err(Error::NoIdentity);
        }
        if !(1..=INFLIGHT_MAX).contains(&self.max_inflight) {
            return Err(Error::Inflight(self.max_inflight));
        }
        Ok(())
    }
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
    fn what_cannot_work_is_refused_by_the_name_of_its_flag() {
        check(|_| {}, "ok");
        check(|it| it.namespace = "A".into(), "--sharder-namespace: `A` is no namespace");
        check(|it| it.max_inflight = 0, "--max-inflight: 0 is not between 1 and 1024");
        let unnamed = "a replica has to be told from the others: its identity is empty";
        check(|it| it.identity = String::new(), unnamed);
    }
}
