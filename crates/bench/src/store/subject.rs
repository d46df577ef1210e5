//! What is measured: which part a server plays in the table, and how it comes to run.

use std::{fmt, net::SocketAddr, path::PathBuf};

use serde::{Deserialize, Serialize};

/// The part a server plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The store that is judged.
    Windlass,
    Etcd,
    Ceiling,
    DurableCeiling,
}

#[derive(Clone, Debug)]
pub struct Subject {
    pub role: Role,
    pub place: Place,
}

#[derive(Clone, Debug)]
pub enum Place {
    /// Started anew for every row of every round, on an empty folder.
    Launched(Launch),
    /// Runs already, and keeps what earlier rows wrote.
    Running(Running),
}

/// A command; the flags of the role follow its arguments.
#[derive(Clone, Debug)]
pub struct Launch {
    pub program: PathBuf,
    pub args: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
pub struct Running {
    pub address: SocketAddr,
    /// If known, its processor time and memory are measured too.
    pub pid: Option<u32>,
}

// === impl Role ===

impl Role {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Windlass => "windlass",
            Self::Etcd => "etcd",
            Self::Ceiling => "ceiling",
            Self::DurableCeiling => "durable ceiling",
        }
    }

    /// Whether it is a store, and not one of the ceilings.
    #[must_use]
    pub fn is_store(self) -> bool {
        matches!(self, Self::Windlass | Self::Etcd)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
