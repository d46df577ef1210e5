//! Forgetting ended tasks on demand. What is forgotten by itself, the agent decides.

use std::collections::BTreeMap;

use etcd_api::mvccpb::KeyValue;
use tokio::time::Instant;

use super::list::Wanted;
use super::{Error, Listed, Store};
use crate::core::id::{Revision, TaskId};
use crate::core::keys::{Key, KeyRange, StatusKey};
use crate::core::time::Epoch;
use crate::core::transition::{Batch, BatchOutcome, Plan, Settled, delete};

#[derive(Debug, thiserror::Error)]
pub enum GcError {
    #[error("the ended tasks could not be listed")]
    Statuses(#[source] Error),
    #[error("the tasks could not be listed")]
    Tasks(#[source] Error),
    #[error("{deleted} tasks were deleted, and then no more")]
    Delete {
        deleted: u64,
        #[source]
        source: Error,
    },
}

// === impl Store ===

impl Store {
    /// Deletes all tasks that ended before `before`; how many. Whoever changes meanwhile stays.
    pub async fn gc(&self, before: Epoch, until: Instant) -> Result<u64, GcError> {
        let plans = self.plan_gc(before).await?;
        let mut deleted = 0;
        for batch in Batch::split(plans) {
            let answer = self.insist(&batch.txn, until).await;
            let answer = answer.map_err(|source| GcError::Delete { deleted, source })?;
            match batch.settle(&answer) {
                BatchOutcome::Settled(settled) => {
                    let won = settled.iter().filter(|each| matches!(each, Ok(Settled::Won(_))));
                    deleted += u64::try_from(won.count()).expect("batches are small");
                }
                BatchOutcome::Fenced => unreachable!("only claims have a fence"),
            }
        }
        Ok(deleted)
    }

    async fn plan_gc(&self, before: Epoch) -> Result<Vec<Plan>, GcError> {
        let statuses = Wanted { range: KeyRange::STATUSES, at: None, is_keys_only: true };
        let Listed { kvs, revision } = self.list_all(statuses).await.map_err(GcError::Statuses)?;
        let old = |kv: &KeyValue| match Key::parse(kv.key()) {
            Ok(Key::Status(key @ StatusKey::Ended(_, epoch, _))) if epoch < before => Some(key),
            _ => None,
        };
        let old: Vec<StatusKey> = kvs.iter().filter_map(old).collect();
        let tasks = Wanted { range: KeyRange::TASKS, at: Some(revision), is_keys_only: true };
        let tasks = self.list_all(tasks).await.map_err(GcError::Tasks)?;
        let modified = modified(&tasks.kvs);
        let plan = |key: StatusKey| delete(key, *modified.get(&key.task())?).ok();
        Ok(old.into_iter().filter_map(plan).collect())
    }
}

fn modified(tasks: &[KeyValue]) -> BTreeMap<TaskId, Revision> {
    let of = |kv: &KeyValue| match Key::parse(kv.key()) {
        Ok(Key::Task(id)) => Some((id, Revision(kv.mod_revision()))),
        _ => None,
    };
    tasks.iter().filter_map(of).collect()
}
