//! Names of things, each its own type. Makes ids only from what it is given; never draws one.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use uuid::{Builder, Uuid};

/// Idempotency keys become ids below this name.
const IDEMPOTENCY: Uuid = Uuid::from_u128(0x6f1c_83a2_52d7_5e0e_9b5d_0c2f_7a41_90e6);

/// Text that is no UUID in its one spelling: lower case, with hyphens.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a UUID in lower case")]
pub struct IdError {
    pub text: String,
}

/// Defines a UUID with a meaning.
macro_rules! uuid_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.as_hyphenated().fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                parse(text).map(Self)
            }
        }
    };
}

uuid_type! {
    /// A task.
    TaskId
}

uuid_type! {
    /// One registration of a node: fresh for each start and after each fencing.
    NodeId
}

uuid_type! {
    /// A data directory, and with it the logs, cgroups and leftovers of all nodes that lived in it.
    HostId
}

uuid_type! {
    /// One write of a task, so that its writer recognises it.
    WriteId
}

/// A revision of the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub i64);

/// The mod revision of a claim. It grows from attempt to attempt, so that whoever is written to can
/// refuse the older one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(pub i64);

/// Attempts are counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptNumber(pub u32);

/// Makes ids from one random seed: the shell draws it once, and everything after it can be repeated.
#[derive(Clone, Debug)]
pub struct Ids {
    seed: Uuid,
    made: u64,
}

// === impl TaskId ===

impl TaskId {
    /// The id of every task submitted under `key`.
    #[must_use]
    pub fn of_key(key: &str) -> Self {
        Self(Uuid::new_v5(&IDEMPOTENCY, key.as_bytes()))
    }

    /// An id without a key. Ids of later times sort later.
    #[must_use]
    pub fn at(now: Timestamp, random: [u8; 10]) -> Self {
        let millis = u64::try_from(now.as_millisecond()).unwrap_or(0);
        Self(Builder::from_unix_timestamp_millis(millis, &random).into_uuid())
    }
}

// === impl AttemptNumber ===

impl AttemptNumber {
    pub const FIRST: Self = Self(1);

    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for AttemptNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

// === impl Revision ===

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

// === impl Ids ===

impl Ids {
    #[must_use]
    pub fn new(seed: Uuid) -> Self {
        Self { seed, made: 0 }
    }

    #[must_use]
    pub fn write(&mut self) -> WriteId {
        WriteId(self.fresh())
    }

    #[must_use]
    pub fn node(&mut self) -> NodeId {
        NodeId(self.fresh())
    }

    fn fresh(&mut self) -> Uuid {
        self.made += 1;
        Uuid::new_v5(&self.seed, &self.made.to_be_bytes())
    }
}

/// One id has one spelling; otherwise one task could have two keys.
fn parse(text: &str) -> Result<Uuid, IdError> {
    let refused = || IdError { text: text.to_owned() };
    let has_one_spelling = text.len() == 36 && !text.bytes().any(|byte| byte.is_ascii_uppercase());
    if !has_one_spelling {
        return Err(refused());
    }
    Uuid::try_parse(text).ok().ok_or_else(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_one_spelling() {
        let id = "0190a7e6-8c00-7d3e-8000-00000000002a";
        assert_eq!(id.parse::<TaskId>().unwrap().to_string(), id);
        for other in [
            "0190A7E6-8c00-7d3e-8000-00000000002a",
            "0190a7e68c007d3e800000000000002a",
            "{0190a7e6-8c00-7d3e-8000-00000000002a}",
            "urn:uuid:0190a7e6-8c00-7d3e-8000-00000000002a",
            "0190a7e6-8c00-7d3e-8000-00000000002",
            "0190a7e6-8c00-7d3e-8000-00000000002g",
            "",
        ] {
            assert_eq!(other.parse::<TaskId>(), Err(IdError { text: other.to_owned() }));
        }
    }

    #[test]
    fn a_key_is_one_id_and_versions_tell_the_kinds_apart() {
        assert_eq!(TaskId::of_key("nightly"), TaskId::of_key("nightly"));
        assert_ne!(TaskId::of_key("nightly"), TaskId::of_key("nightly2"));
        assert_eq!(TaskId::of_key("nightly").0.get_version_num(), 5);
        let at = |millis| TaskId::at(Timestamp::from_millisecond(millis).unwrap(), [0xff; 10]);
        assert_eq!(at(1).0.get_version_num(), 7);
        assert!(at(1) < at(2));
    }

    #[test]
    fn ids_differ_and_repeat_with_their_seed() {
        let mut ids = Ids::new(Uuid::from_u128(1));
        let mut again = Ids::new(Uuid::from_u128(1));
        let first = ids.write();
        assert_eq!(first, again.write());
        assert_ne!(first, ids.write());
    }
}
