//! The one class each node and each instance has. Telling it is the work of `classify`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a node, or an instance without one, is. The first that applies, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Class {
    /// The machine is no more. Waits for Kubernetes to remove the Node.
    Gone,
    /// Being removed. Ends with the machine, or is rolled back at its deadline.
    Leaving,
    /// Sleeps on purpose. Its condition moves it on.
    Suspended,
    Ready,
    /// Unready and young. Becomes Ready, or at its deadline `BrokenStart` or `Unready`.
    Starting,
    /// Was never Ready, and is not young any more. Waits to be removed.
    BrokenStart,
    /// Was Ready once. Recovers, or waits to be removed.
    Unready,
    /// An instance without Node on its way out. Waits for the provider.
    CloudDeleting,
    /// The provider could not make it. Waits to be deleted.
    CreateFailed,
    /// An instance whose Node is yet to come. Registers, or at its deadline is `LongUnregistered`.
    Unregistered,
    /// An instance whose Node did not come. Waits to be deleted.
    LongUnregistered,
}

/// What happens to a node or an instance at its deadline, or next if it has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    Nothing,
    NodeObjectGoes,
    /// The machine goes; if it has not at the deadline, the taint is lifted.
    LeavesOrStays,
    Becomes(Class),
    Removed,
    /// Not removed, and why.
    Kept(&'static str),
    InstanceDeleted,
}

// === impl Class ===

impl Class {
    /// Whether it counts against the health of cluster and zone.
    #[must_use]
    pub fn is_unready(self) -> bool {
        matches!(self, Self::BrokenStart | Self::Unready)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
