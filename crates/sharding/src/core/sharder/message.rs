//! What the sharder is told, and what it says. The shell carries commands out; every command with a
//! token is answered once, by its time limit at the latest.

use std::collections::BTreeSet;

use crate::core::lease::Lease;
use crate::core::names::InstanceId;
use crate::core::object::{LabelChange, Object, ObjectName, Uid, Version};
use crate::core::partition::table::Kept;
use crate::core::time::Moment;

/// Which answer belongs to which command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token(pub u64);

/// What happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// Time has passed.
    Tick,
    /// We lead, and may write until then.
    Leading {
        until: Moment,
    },
    Standby,
    /// These Leases of the ring exist and no others.
    LeasesListed(Vec<Lease>),
    LeaseSeen(Box<Lease>),
    /// As it was when it was deleted.
    LeaseDeleted(Box<Lease>),
    /// Whether the API server refuses what a former owner writes.
    Fenced(bool),
    /// The namespaces whose objects the ring has.
    Namespaces(BTreeSet<String>),
    /// The table as the Ring's status has it, and the Ring's version.
    TableRead {
        kept: Option<Kept>,
        version: Version,
    },
    /// An object without a shard label, as the watch shows it. `is_listed`: it was there when the
    /// watch began, so that it may be new or given up long ago.
    Unassigned {
        object: Box<Object>,
        is_listed: bool,
    },
    /// It has been labelled or deleted.
    NotUnassigned(ObjectName),
    /// A state label could not be set, some time ago.
    NotShown {
        id: InstanceId,
        namespace: String,
    },
    Answered {
        token: Token,
        answer: Answer,
    },
}

#[derive(Clone, Debug)]
pub enum Answer {
    /// As written or read.
    Object(Box<Object>),
    Lease(Box<Lease>),
    /// The table is written; the Ring's new version.
    Table(Version),
    Page {
        objects: Vec<Object>,
        is_last: bool,
    },
    Children(Vec<Object>),
    /// There is no such thing, or no longer.
    Gone,
    /// It was written since it was seen.
    Conflict,
    /// There is a Lease of this name, and it is not of the ring.
    NotOfRing,
    /// The server will not have it: a policy, or a right that is missing.
    Refused,
    /// It failed, or nobody knows what became of it.
    Failed,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Change the labels of the object, if it still has this version.
    WriteObject {
        token: Token,
        name: ObjectName,
        version: Version,
        change: LabelChange,
    },
    ReadObject {
        token: Token,
        name: ObjectName,
    },
    /// Write the Lease, if it still has its version; or create it.
    WriteLease {
        token: Token,
        lease: Box<Lease>,
        is_new: bool,
    },
    ReadLease {
        token: Token,
        id: InstanceId,
        namespace: String,
    },
    DeleteLease {
        token: Token,
        lease: Box<Lease>,
    },
    /// Set the state label of a Lease, for people to read. Only a failure is told, by
    /// [`Event::NotShown`], when it may be tried again.
    ShowState {
        id: InstanceId,
        namespace: String,
        word: &'static str,
    },
    /// Keep the table in the Ring's status, if the Ring still has this version.
    WriteTable {
        token: Token,
        kept: Kept,
        version: Version,
    },
    /// Answered by [`Event::TableRead`].
    ReadTable,
    /// The first or the next page. Pages that cannot be gone on with are answered with
    /// [`Answer::Failed`], and begin anew.
    ListPage {
        token: Token,
        kinds: KindSet,
        selector: Selector,
        is_first: bool,
    },
    /// All children of these objects that carry the id, or any.
    ListChildren {
        token: Token,
        from: Option<InstanceId>,
        parents: BTreeSet<Uid>,
    },
    /// Something that people want to know.
    Tell(News),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KindSet {
    Main,
    Controlled,
}

/// Objects by their shard label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// With one that is none of these, or without.
    NotOf(BTreeSet<InstanceId>),
    Of(InstanceId),
    All,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    MemberDead(InstanceId),
    UnreadableWeight(InstanceId),
    /// A younger Lease has an id that is taken.
    IdInUse {
        id: InstanceId,
        namespace: String,
    },
    Forced {
        object: ObjectName,
        from: InstanceId,
    },
    Overdue {
        object: ObjectName,
        owner: InstanceId,
    },
    /// It carries the id of an instance that was never given it: somebody else has labelled it.
    Strayed {
        object: ObjectName,
        carries: InstanceId,
    },
    /// Its instance is gone, and it cannot be labelled for another.
    Stuck {
        object: ObjectName,
        owner: InstanceId,
    },
    /// A Lease that is not of the ring has the name that the Lease of an instance would have.
    NameTaken {
        id: InstanceId,
        namespace: String,
    },
    Assigned {
        object: ObjectName,
    },
    Moved {
        object: ObjectName,
        from: InstanceId,
    },
    TooManyInstances(usize),
}
