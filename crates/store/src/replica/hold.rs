//! The writer's role while this member has it.

use journal::{Epoch, Shared};
use tokio::time::Instant;

use super::{Mirror, run::Parts};
use crate::{
    context::Context,
    lease::Deadlines,
    lifecycle::{StopError, Threads},
    load::{self, LoadError},
    sequencer::Loaded,
    writing::Desk,
};

/// The role, and the threads that write.
pub(super) struct Held {
    epoch: Epoch,
    threads: Threads,
}

pub(super) enum TakeError {
    Load(LoadError),
    Threads(StopError),
}

// === impl Held ===

impl Held {
    /// Claims the role, reads what the one before wrote last, and starts to write.
    pub(super) fn take(
        mirror: &mut Mirror,
        shared: &dyn Shared,
        parts: &Parts,
    ) -> Result<Self, TakeError> {
        let Parts { context, feed, .. } = parts;
        let (epoch, leases) = claim(mirror, shared, parts).map_err(TakeError::Load)?;
        let mut keyspace = std::mem::take(&mut mirror.keyspace);
        keyspace.set_leases(leases);
        *context.deadlines.lock() = Deadlines::of(&keyspace, Instant::now());
        let (alarms, auth) = (mirror.alarms.clone(), mirror.auth.clone());
        let state = Loaded { keyspace, alarms, auth };
        let desk = Desk { context: context.clone(), feed: feed.clone() };
        let unfinished = mirror.leftovers.take();
        let (commands, flow) = desk.open(state, epoch, 0, unfinished);
        let threads = Threads::write(flow).map_err(TakeError::Threads)?;
        context.sequencer.seat(commands);
        context.standing.hold(epoch);
        tracing::info!(epoch = epoch.0, revision = context.published.revision().0, "writing");
        Ok(Self { epoch, threads })
    }

    pub(super) fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Whether nothing more can be written under this claim.
    pub(super) fn has_failed(&self) -> bool {
        self.threads.failed().is_cancelled()
    }

    /// Lets what was begun end as the journal sees fit. What was not answered by then never is.
    pub(super) fn give_up(self, context: &Context) {
        context.sequencer.unseat();
        if let Err(error) = self.threads.join() {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(error, epoch = self.epoch.0, "the writer's role is given up");
        }
        *context.deadlines.lock() = Deadlines::default();
    }
}

type Leases = Vec<(mvcc::LeaseId, i64)>;

fn claim(
    mirror: &mut Mirror,
    shared: &dyn Shared,
    parts: &Parts,
) -> Result<(Epoch, Leases), LoadError> {
    let Parts { context, feed, .. } = parts;
    let epoch = context.journal.claim().map_err(|source| LoadError::Claim { source })?;
    // From here on nobody else can add anything.
    let tip = shared.tip().map_err(|source| LoadError::Read { source })?;
    mirror.follow(tip, shared, context, feed)?;
    let meta = load::meta(&*context.journal)?;
    Ok((epoch, meta.leases))
}
