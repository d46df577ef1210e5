//! The task of an instance: one, owned by the [`Shard`](super::Shard). The only place here that
//! spawns. When the last clone of the shard is dropped, the task ends, and with it everything that was
//! begun under its Lease.

use tokio::task::JoinSet;

/// Ends its task when it is dropped. Whoever waits for the task learns of its end by what it drops.
pub(super) struct Keeping {
    _task: JoinSet<()>,
}

pub(super) fn keep(task: impl Future<Output = ()> + Send + 'static) -> Keeping {
    let mut owner = JoinSet::new();
    owner.spawn(task);
    Keeping { _task: owner }
}
