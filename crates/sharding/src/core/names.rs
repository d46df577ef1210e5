//! What the parties call things: instances, rings, and the labels and annotations by which they
//! speak. Two dialects: our own, under any prefix, and that of the Go project whose controllers run
//! here unchanged.

#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::membership::State;

/// A name that is an RFC 1123 label; checked where it is parsed.
macro_rules! rfc_1123_label {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::try_from(text.to_owned())
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;

            fn try_from(text: String) -> Result<Self, NameError> {
                check_label(&text).map(|()| Self(text))
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

/// What a DNS label may have, and a label's value and name too.
pub const LABEL_CHARACTERS_MAX: usize = 63;
/// What a DNS subdomain may have, such as the prefix of a label.
pub const SUBDOMAIN_CHARACTERS_MAX: usize = 253;
pub const PREFIX_DEFAULT: &str = "windlass.dev";

const TIMEBERTT_PREFIX: &str = "alpha.sharding.timebertt.dev";
/// The longest of what stands before a prefix.
const LONGEST_LEAD: &str = "shard.";

rfc_1123_label! {
    /// One instance of a sharded controller: the name of its Lease, the holder written in it, and
    /// the value of the shard label on its objects.
    InstanceId
}

rfc_1123_label! {
    /// One sharded set. Its name ends the keys of labels.
    RingName
}

/// Why a text is no DNS name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("the name is empty")]
    Empty,
    #[error("{name:?} has {} characters, more than {max}", .name.len())]
    TooLong { name: String, max: usize },
    #[error("{0:?} has a character that is none of a-z, 0-9 and -")]
    Character(String),
    #[error("{0:?} begins or ends with -")]
    Edge(String),
}

/// Whose words are spoken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Ours, under this prefix.
    Own { prefix: String },
    /// That of timebertt/kubernetes-controller-sharding. It knows neither weights nor annotations.
    Timebertt,
}

/// All names that one ring uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    ring: RingName,
    dialect: Dialect,
}

/// What instances and sharder tell each other in a Lease besides its spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Annotation {
    /// Random for each start of a process.
    Incarnation,
    /// `<pod uid>/<container>`: tells a restart of the container from another pod.
    Pod,
    /// The instance ended in order and will be back within so many seconds.
    HoldSeconds,
    /// Raised by the sharder when objects were marked for draining.
    DrainEpoch,
    /// The last such number for which the instance has looked at its draining objects.
    DrainSeen,
}

// === impl InstanceId ===

impl InstanceId {
    /// What a shard label says, whatever somebody wrote there. A Lease of such a name need not exist.
    #[must_use]
    pub fn from_label(value: &str) -> Self {
        Self(value.to_owned())
    }

    /// Whether an instance can have it. What a label says may be no name of a Lease.
    #[must_use]
    pub fn is_possible(&self) -> bool {
        check_label(&self.0).is_ok()
    }
}

// === impl Names ===

impl Names {
    #[must_use]
    pub fn new(ring: RingName, dialect: Dialect) -> Self {
        Self { ring, dialect }
    }

    #[must_use]
    pub fn ring(&self) -> &RingName {
        &self.ring
    }

    /// On a Lease: the ring it belongs to.
    #[must_use]
    pub fn ring_label(&self) -> String {
        match &self.dialect {
            Dialect::Own { prefix } => format!("{prefix}/ring"),
            Dialect::Timebertt => format!("{TIMEBERTT_PREFIX}/controllerring"),
        }
    }

    /// On a Lease: what the sharder thinks of the instance. For people to read.
    #[must_use]
    pub fn state_label(&self) -> String {
        format!("{}/state", self.prefix())
    }

    /// On a Lease: how much the instance takes, compared with the others.
    #[must_use]
    pub fn weight_label(&self) -> Option<String> {
        match &self.dialect {
            Dialect::Own { prefix } => Some(format!("{prefix}/virtual-nodes")),
            Dialect::Timebertt => None,
        }
    }

    /// On an object: whose it is.
    #[must_use]
    pub fn shard_label(&self) -> String {
        format!("shard.{}/{}", self.prefix(), self.ring)
    }

    /// On an object: that its instance is to give it up, and by when.
    #[must_use]
    pub fn drain_label(&self) -> String {
        format!("drain.{}/{}", self.prefix(), self.ring)
    }

    /// Who holds a Lease that the sharder has taken from an instance.
    #[must_use]
    pub fn sharder_holder(&self) -> &'static str {
        match self.dialect {
            Dialect::Own { .. } => "windlass-sharder",
            Dialect::Timebertt => "shardlease-controller",
        }
    }

    /// None where the dialect has no such word.
    #[must_use]
    pub fn annotation(&self, annotation: Annotation) -> Option<String> {
        match &self.dialect {
            Dialect::Own { prefix } => Some(format!("{prefix}/{}", annotation.as_str())),
            Dialect::Timebertt => None,
        }
    }

    /// Whether an instance can tell that it has seen what is to be drained.
    #[must_use]
    pub fn has_annotations(&self) -> bool {
        matches!(self.dialect, Dialect::Own { .. })
    }

    /// The word for the state label. `is_long_silent`: silent for twice the Lease's duration.
    #[must_use]
    pub fn state_word(&self, state: State, is_long_silent: bool) -> &'static str {
        match (&self.dialect, state) {
            (Dialect::Own { .. }, _) => state.as_str(),
            (Dialect::Timebertt, State::Ready) => "ready",
            (Dialect::Timebertt, State::Unknown) if is_long_silent => "uncertain",
            (Dialect::Timebertt, State::Unknown | State::Restarting) => "expired",
            (Dialect::Timebertt, State::Dead | State::Released) => "dead",
            (Dialect::Timebertt, State::Orphan) => "orphaned",
            (Dialect::Timebertt, State::Conflict) => "unknown",
        }
    }

    fn prefix(&self) -> &str {
        match &self.dialect {
            Dialect::Own { prefix } => prefix,
            Dialect::Timebertt => TIMEBERTT_PREFIX,
        }
    }
}

// === impl Annotation ===

impl Annotation {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Incarnation => "incarnation",
            Self::Pod => "pod",
            Self::HoldSeconds => "hold-seconds",
            Self::DrainEpoch => "drain-epoch",
            Self::DrainSeen => "drain-seen",
        }
    }
}

/// An RFC 1123 label.
fn check_label(text: &str) -> Result<(), NameError> {
    if text.is_empty() {
        return Err(NameError::Empty);
    }
    if text.len() > LABEL_CHARACTERS_MAX {
        return Err(NameError::TooLong { name: text.to_owned(), max: LABEL_CHARACTERS_MAX });
    }
    if !text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') {
        return Err(NameError::Character(text.to_owned()));
    }
    if text.starts_with('-') || text.ends_with('-') {
        return Err(NameError::Edge(text.to_owned()));
    }
    Ok(())
}

/// A DNS subdomain short enough to be the prefix of our labels.
pub(super) fn check_prefix(text: &str) -> Result<(), NameError> {
    let max = SUBDOMAIN_CHARACTERS_MAX - LONGEST_LEAD.len();
    if text.len() > max {
        return Err(NameError::TooLong { name: text.to_owned(), max });
    }
    text.split('.').try_for_each(check_label)
}
