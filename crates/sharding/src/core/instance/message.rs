//! What an instance is told, and what it says. The shell carries commands out; every request is
//! answered once, by its time limit at the latest.

use std::time::Duration;

use super::join::JoinError;
use crate::core::lease::Lease;
use crate::core::object::{Object, ObjectName, Version};
use crate::core::time::Moment;

/// What happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// Time has passed.
    Tick,
    /// The Lease as it is now, if there is one, and the ring it is labelled with.
    LeaseRead {
        lease: Option<Box<Lease>>,
        ring: Option<String>,
    },
    /// It could not be read.
    LeaseUnread,
    /// What became of a write that was sent at `sent`.
    LeaseWritten {
        sent: Moment,
        outcome: Outcome<Box<Lease>>,
    },
    /// Whether any object carries our id.
    Carried(bool),
    /// An object that carries our id, as a watch or a read shows it.
    Seen(Box<Object>),
    /// It carries our id no more, or is deleted.
    Left(ObjectName),
    /// All our objects that are draining, listed after the epoch was seen.
    DrainsListed {
        epoch: u64,
        objects: Vec<Object>,
    },
    DrainsNotListed,
    /// A reconcile of the object has really ended: no step of it will follow.
    Ended(ObjectName),
    Acknowledged(ObjectName, Outcome<()>),
    Stop(Stop),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<T> {
    Done(T),
    /// It was written, created or deleted since it was seen.
    Conflict,
    /// It failed, or nobody knows what became of it.
    Failed,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    ReadLease,
    /// Write the Lease if it still has its version, or create it.
    WriteLease {
        lease: Box<Lease>,
        is_new: bool,
    },
    AskCarried,
    /// Reconciles may begin.
    Work,
    ListDrains {
        epoch: u64,
    },
    /// Answered by [`Event::Seen`] or [`Event::Left`].
    ReadObject(ObjectName),
    /// Drop the reconcile of the object; [`Event::Ended`] tells when it is gone.
    Cancel(ObjectName),
    /// Remove both labels, if the object still has this version.
    Acknowledge {
        name: ObjectName,
        version: Version,
    },
    /// Everything stops now, and the process ends.
    Lost(Loss),
    /// Ended in order.
    Left,
}

/// Why an instance may not go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Loss {
    #[error("the Lease was not renewed in time")]
    Deadline,
    #[error("the Lease is held by another")]
    Taken,
    #[error("the Lease is gone")]
    Gone,
    #[error("cannot join the ring")]
    Join(#[source] JoinError),
}

/// How to end in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The objects go to others.
    Release,
    /// The objects stay, for an instance of the same id that will be there within this time.
    Hold(Duration),
}
