//! A sharded object as its metadata shows it, and the changes that are made to its labels.

use std::fmt;

use super::names::InstanceId;

/// `apps`, `Deployment`. The group of Kubernetes' first kinds is empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupKind {
    pub group: String,
    pub kind: String,
}

/// Which object. Outlives its deletion: one that is created again has the same name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    pub kind: GroupKind,
    /// None for objects of the cluster.
    pub namespace: Option<String>,
    pub name: String,
}

/// A resource version: equal while nobody has written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version(pub String);

/// One life of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid(pub String);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    pub name: ObjectName,
    pub uid: Uid,
    pub version: Version,
    /// The shard label.
    pub shard: Option<InstanceId>,
    /// The drain label.
    pub drain: Option<Drain>,
    /// The one owner reference that says `controller: true`.
    pub controller: Option<Controller>,
}

/// That the object is to be given up. Anything stands for yes; ours says by when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drain {
    /// Unix seconds.
    Until(u64),
    /// Whoever wrote it, it is not a time.
    Unreadable,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controller {
    pub kind: GroupKind,
    pub name: String,
    pub uid: Uid,
}

/// What a write does to the two labels. All are refused unless the object is still as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabelChange {
    /// Whatever it says now, the object is this instance's, and not draining.
    Shard(InstanceId),
    /// The instance is to give it up.
    Drain(Drain),
    /// It may keep it after all.
    Undrain,
    /// It is nobody's: an acknowledgement, or an object that leaves the ring.
    Clear,
}

// === impl GroupKind ===

impl GroupKind {
    #[must_use]
    pub fn new(group: &str, kind: &str) -> Self {
        Self { group: group.to_owned(), kind: kind.to_owned() }
    }
}

impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.group, self.kind)
    }
}

// === impl ObjectName ===

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let namespace = self.namespace.as_deref().unwrap_or_default();
        write!(f, "{}/{namespace}/{}", self.kind, self.name)
    }
}

// === impl Version ===

impl Version {
    /// Resource versions of one kind are numbers that grow. Where a server gives out something else,
    /// nothing is known to be newer.
    #[must_use]
    pub fn is_newer_than(&self, other: &Self) -> bool {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let (own, other) = (&self.0, &other.0);
        is_number(own) && is_number(other) && (own.len(), own) > (other.len(), other)
    }
}

// === impl Object ===

impl Object {
    /// The object as it will be after the change.
    #[must_use]
    pub fn with(mut self, change: &LabelChange) -> Self {
        match change {
            LabelChange::Shard(to) => (self.shard, self.drain) = (Some(to.clone()), None),
            LabelChange::Drain(drain) => self.drain = Some(*drain),
            LabelChange::Undrain => self.drain = None,
            LabelChange::Clear => (self.shard, self.drain) = (None, None),
        }
        self
    }
}

// === impl Drain ===

impl Drain {
    /// The value of the label.
    #[must_use]
    pub fn parse(value: &str) -> Self {
        let is_plain = value.bytes().all(|byte| byte.is_ascii_digit());
        let seconds = if is_plain { value.parse().ok() } else { None };
        seconds.map_or(Self::Unreadable, Self::Until)
    }
}

impl fmt::Display for Drain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Until(seconds) => seconds.fmt(f),
            Self::Unreadable => f.write_str("true"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_value_and_only_if_they_are_numbers() {
        let is_newer =
            |a: &str, b: &str| Version(a.to_owned()).is_newer_than(&Version(b.to_owned()));
        assert!(is_newer("10", "9"));
        assert!(is_newer("99999999999999999999999", "99999999999999999999998"));
        assert!(!is_newer("9", "10") && !is_newer("9", "9"));
        assert!(!is_newer("b", "a") && !is_newer("2", "") && !is_newer("", "1"));
    }

    #[test]
    fn a_drain_label_is_a_time_or_just_there() {
        assert_eq!(Drain::parse("1700000000"), Drain::Until(1_700_000_000));
        for other in ["", "true", "-1", "+1", "17.5", "99999999999999999999999"] {
            assert_eq!(Drain::parse(other), Drain::Unreadable, "{other:?}");
        }
    }
}
