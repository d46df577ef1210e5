//! What it takes to write: the channels between the threads, and where durable batches are seen.

use std::{
    collections::VecDeque,
    sync::{Arc, mpsc as std_mpsc},
    time::Duration,
};

use journal::Epoch;
use mvcc::Position;
use tokio::{sync::mpsc, time::Instant};

use crate::{
    Error,
    context::Context,
    housekeeping::{self, GivenUp, Housekeeping, UpkeepRoom},
    lifecycle::Flow,
    sequencer::{
        self, Audience, Channels, Command, Committer, Effect, Loaded, SnapshotPoint, Writer,
    },
    watch::Feed,
};

/// How long what a compaction dropped stays in a shared journal: those who follow it may not have
/// heard of the compaction, and still show what it dropped.
const FOLLOWERS_GRACE: Duration = Duration::from_secs(10);

/// Where writing is set up.
pub(crate) struct Desk {
    pub(crate) context: Arc<Context>,
    pub(crate) feed: Arc<Feed>,
}

// === impl Desk ===

impl Desk {
    /// Sets up the threads that write from `state` on. `unfinished` was dropped by a compaction, and
    /// may not have been given up.
    pub(crate) fn open(
        &self,
        mut state: Loaded,
        epoch: Epoch,
        batch_number: u64,
        unfinished: Vec<Position>,
    ) -> (mpsc::Sender<Command>, Flow) {
        let context = &self.context;
        state.keyspace.bound_records(context.journal.record_bytes_max());
        let (commands, command_queue) = mpsc::channel(sequencer::COMMANDS_MAX);
        let (batches, batch_queue) = std_mpsc::sync_channel(1);
        let (durable, durable_signal) = std_mpsc::sync_channel(1);
        let (superseded, superseded_queue) = std_mpsc::sync_channel(housekeeping::SUPERSEDED_MAX);
        let compacted = state.keyspace.compacted();
        let waiting = housekeeping::unfinished(compacted, unfinished, Instant::now());
        let given_up = GivenUp::default();
        let is_alone = context.standing.is_alone();
        let channels = Channels {
            commands: command_queue,
            batches,
            durable: durable_signal,
            superseded,
            given_up: (!is_alone).then(|| given_up.clone()),
        };
        let flow = Flow {
            writer: Writer::new(state, epoch, batch_number, context.kept.clone(), channels),
            committer: Committer {
                journal: context.journal.clone(),
                epoch,
                batches: batch_queue,
                durable,
                commands: commands.clone(),
                audience: self.audience(),
                appends: context.metrics.appends.clone(),
            },
            housekeeping: Housekeeping {
                journal: context.journal.clone(),
                epoch,
                published: context.published.clone(),
                quota: context.quota.clone(),
                superseded: superseded_queue,
                commands: commands.clone(),
                waiting: VecDeque::from_iter(waiting),
                room: UpkeepRoom::default(),
                grace: if is_alone { Duration::ZERO } else { FOLLOWERS_GRACE },
                given_up,
            },
        };
        (commands, flow)
    }

    fn audience(&self) -> Audience {
        let (effects, feed) = (self.context.clone(), self.feed.clone());
        Audience {
            kept: self.context.kept.clone(),
            published: self.context.published.clone(),
            on_effect: Box::new(move |effect| on_effect(&effects, effect)),
            on_changes: Box::new(move |changes| feed.bring(changes)),
        }
    }
}

fn on_effect(context: &Context, effect: Effect) {
    match effect {
        Effect::LeaseGranted { id, ttl_s } => {
            context.metrics.lease_granted();
            context.deadlines.lock().grant(id, ttl_s, Instant::now());
        }
        Effect::LeaseRevoked { id } => {
            context.metrics.lease_revoked();
            context.deadlines.lock().revoke(id);
        }
        Effect::Alarms(alarms) => context.alarms.store(Arc::new(alarms)),
        Effect::Auth(state) => context.gate.publish(state),
        Effect::Snapshot(reply) => {
            let meta = context.journal.meta().map_err(Error::Journal);
            let point = meta.map(|meta| SnapshotPoint { state: context.state(), meta });
            // Whoever asked may have gone away; that changes nothing.
            drop(reply.send(point));
        }
    }
}
