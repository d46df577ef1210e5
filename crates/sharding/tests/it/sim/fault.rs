//! Mistakes that an implementation could make, made on purpose between the core and its surroundings.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// An object is given up as soon as its drain label is seen, whatever runs.
    AckWhileBusy,
    /// A lost Lease stops nobody.
    LossIgnored,
    /// An acknowledgement is carried out whatever became of the object.
    UnguardedAck,
    /// Children are moved when their parent is to be drained.
    ChildrenFirst,
    /// The sharder takes a Lease whatever became of it.
    UnguardedAcquire,
    /// The sharder believes to hold a Lease that it did not take.
    DeadMoveWithoutHold,
    /// Deadlines count as passed.
    ForceBeforeDeadline,
    /// A reconcile goes on without looking at its Lease.
    NoPollCheck,
    /// An instance says that it has seen what it is to give up, and works on.
    SeenBeforeStopped,
    /// The sharder finds no children.
    ChildrenForgotten,
    /// While there is trouble, nothing is given to anybody.
    AssignsLate,
    /// Lists show the sharder nothing, so that it counts nothing.
    CountsNothing,
}
