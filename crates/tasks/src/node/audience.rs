//! Who listens to a node: what became of tasks, as it comes in, and where the node itself stands.
//! Nobody who listens can hold it up.

use std::sync::Arc;

use etcd_api::mvccpb::{Event as Watched, EventType, KeyValue};
use tokio::sync::{broadcast, watch};

use crate::core::agent::Event;
use crate::core::cache::Cache;
use crate::core::id::{NodeId, TaskId};
use crate::core::keys::Key;
use crate::core::record::Record;

/// How far a listener may be behind. Whoever is further loses its place.
pub const UPDATES_MAX: usize = 1024;
/// After so many, listeners get a chance to keep up.
const UPDATES_AT_ONCE: usize = UPDATES_MAX / 4;

/// News of one task.
#[derive(Clone, Debug)]
pub enum TaskUpdate {
    /// It is new or different.
    Changed(Arc<Record>),
    Deleted(TaskId),
}

/// All news from the moment of listening on.
#[derive(Debug)]
pub struct Updates(broadcast::Receiver<TaskUpdate>);

/// Why there is no more news.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpdatesEnded {
    #[error("more than {UPDATES_MAX} updates were not taken in time")]
    TooSlow,
    #[error("the node has stopped")]
    Stopped,
}

/// Where a node stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// The present registration, if there is one and it is not fenced.
    pub node: Option<NodeId>,
    /// Whether tasks and nodes have been listed: before, nothing is known of them.
    pub is_informed: bool,
    pub is_draining: bool,
    /// Has drained and runs nothing any more; still answers.
    pub has_left: bool,
}

/// The node's side of it.
#[derive(Debug)]
pub(super) struct Audience {
    updates: broadcast::Sender<TaskUpdate>,
    standing: watch::Sender<Standing>,
}

// === impl Updates ===

impl Updates {
    pub(super) fn new(updates: &broadcast::Sender<TaskUpdate>) -> Self {
        Self(updates.subscribe())
    }

    /// Cancel safe.
    pub async fn next(&mut self) -> Result<TaskUpdate, UpdatesEnded> {
        self.0.recv().await.map_err(|error| match error {
            broadcast::error::RecvError::Lagged(_) => UpdatesEnded::TooSlow,
            broadcast::error::RecvError::Closed => UpdatesEnded::Stopped,
        })
    }
}

// === impl Audience ===

impl Audience {
    pub(super) fn new() -> (Self, broadcast::WeakSender<TaskUpdate>, watch::Receiver<Standing>) {
        let (updates, _) = broadcast::channel(UPDATES_MAX);
        let (standing, seen) = watch::channel(Standing::default());
        let listen = updates.downgrade();
        (Self { updates, standing }, listen, seen)
    }

    pub(super) fn standing(&self) -> Standing {
        *self.standing.borrow()
    }

    pub(super) fn set_standing(&self, now: Standing) {
        self.standing.send_if_modified(|before| std::mem::replace(before, now) != now);
    }

    /// Tells what an event means for tasks, compared with what is known so far.
    pub(super) async fn tell(&self, known: &Cache, event: &Event) {
        if self.updates.receiver_count() == 0 {
            return;
        }
        let news: Vec<TaskUpdate> = match event {
            Event::Changed(events) => events.iter().filter_map(changed).collect(),
            Event::TasksListed(kvs, _) => listed(known, kvs),
            _ => return,
        };
        for chunk in news.chunks(UPDATES_AT_ONCE) {
            for update in chunk {
                // Nobody may be listening by now.
                drop(self.updates.send(update.clone()));
            }
            tokio::task::yield_now().await;
        }
    }
}

/// What cannot be read is for fsck to find.
fn changed(event: &Watched) -> Option<TaskUpdate> {
    let kv = event.kv();
    let Ok(Key::Task(id)) = Key::parse(kv.key()) else { return None };
    match event.kind() {
        EventType::Delete => Some(TaskUpdate::Deleted(id)),
        EventType::Put => {
            Record::decode(&kv).ok().map(|record| TaskUpdate::Changed(Arc::new(record)))
        }
    }
}

fn listed(known: &Cache, kvs: &[KeyValue]) -> Vec<TaskUpdate> {
    let records = kvs.iter().filter_map(|kv| Record::decode(kv).ok());
    let records: std::collections::BTreeMap<TaskId, Record> =
        records.map(|record| (record.id(), record)).collect();
    let gone = known.tasks().filter(|task| !records.contains_key(&task.id));
    let mut news: Vec<TaskUpdate> = gone.map(|task| TaskUpdate::Deleted(task.id)).collect();
    let is_new = |record: &Record| {
        known.task(record.id()).is_none_or(|task| task.modified != record.modified)
    };
    let new = records.into_values().filter(is_new);
    news.extend(new.map(|record| TaskUpdate::Changed(Arc::new(record))));
    news
}
