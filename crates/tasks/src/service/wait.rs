//! Wait: until tasks have ended, or the time is up. Reads the level, not only the changes: whoever
//! missed some reads again.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::admit::place;
use super::error::{Error, Field};
use super::watch::cut_off;
use super::{Service, task_id, view};
use crate::core::id::TaskId;
use crate::core::keys::Key;
use crate::core::record::Record;
use crate::core::txn::{Op, Txn};
use crate::node::{TaskUpdate, Updates, UpdatesEnded};
use crate::store;
use crate::wire;

const IDS_MAX: usize = 100;
const TIMEOUT_MAX: Duration = Duration::from_mins(10);

/// Tasks that somebody waits for, as they were last seen.
type Awaited = BTreeMap<TaskId, Record>;

// === impl Service ===

impl Service {
    pub(super) async fn wait_for(
        &self,
        request: wire::WaitRequest,
    ) -> Result<wire::WaitResponse, Error> {
        let ids = ids(&request.ids)?;
        let until = Instant::now() + timeout(request.timeout_ms)?;
        let _place = place(&self.shared.waiters, "waiters", self.bounds().waiters_max)?;
        let mut updates = self.listen()?;
        let mut awaited = self.read_all(&ids).await?;
        let mut cut_off = std::pin::pin!(cut_off(self.node().clone()));
        while !has_ended(&awaited) {
            let update = tokio::select! {
                update = tokio::time::timeout_at(until, updates.next()) => update,
                error = &mut cut_off => return Err(error),
            };
            match update {
                Err(_elapsed) => break,
                Ok(Ok(update)) => on_update(&mut awaited, update)?,
                Ok(Err(UpdatesEnded::TooSlow)) => {
                    updates = self.listen()?;
                    awaited = self.read_all(&ids).await?;
                }
                Ok(Err(UpdatesEnded::Stopped)) => return Err(Error::Stopping),
            }
        }
        let tasks = ids.iter().filter_map(|id| awaited.get(id)).map(view::task).collect();
        Ok(wire::WaitResponse { tasks, done: has_ended(&awaited) })
    }

    pub(super) fn listen(&self) -> Result<Updates, Error> {
        self.node().updates().or(Err(Error::Stopping))
    }

    /// All of them in one request, so at one revision.
    async fn read_all(&self, ids: &[TaskId]) -> Result<Awaited, Error> {
        let gets = ids.iter().map(|id| Op::Get(Key::Task(*id))).collect();
        let answer = self.node().store().txn(&Txn::read(gets)).await.map_err(Error::Store)?;
        let read = |(index, id): (usize, &TaskId)| {
            let found = answer.found(index).map_err(store::Error::Answer).map_err(Error::Store)?;
            let found = found.ok_or(Error::NoTask(*id))?;
            let record = Record::decode(found).map_err(store::Error::Record);
            Ok((*id, record.map_err(Error::Store)?))
        };
        ids.iter().enumerate().map(read).collect()
    }
}

fn ids(texts: &[String]) -> Result<Vec<TaskId>, Error> {
    Error::too_many("ids", texts.len(), IDS_MAX)?;
    if texts.is_empty() {
        return Err(Error::field("ids", Field::Missing));
    }
    texts.iter().map(|text| task_id("ids", text)).collect()
}

fn timeout(millis: u64) -> Result<Duration, Error> {
    let max = u64::try_from(TIMEOUT_MAX.as_millis()).expect("minutes, not ages");
    if millis > max {
        return Err(Error::field("timeout_ms", Field::TooLarge { value: millis, max }));
    }
    Ok(Duration::from_millis(millis))
}

fn has_ended(awaited: &Awaited) -> bool {
    awaited.values().all(|record| record.task.status.is_final())
}

/// Changes may be older than what was read.
fn on_update(awaited: &mut Awaited, update: TaskUpdate) -> Result<(), Error> {
    match update {
        TaskUpdate::Changed(record) => {
            if let Some(known) = awaited.get_mut(&record.id())
                && known.modified < record.modified
            {
                *known = (*record).clone();
            }
            Ok(())
        }
        TaskUpdate::Deleted(id)
            if awaited.get(&id).is_some_and(|it| !it.task.status.is_final()) =>
        {
            Err(Error::NoTask(id))
        }
        TaskUpdate::Deleted(_) => Ok(()),
    }
}
