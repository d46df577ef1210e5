//! Watch: changes as they come in. A reader that is too slow is cut off instead of holding up the
//! node: nothing is buffered for it beyond what the node keeps for all.

use futures::stream::{self, BoxStream, StreamExt};
use tokio::sync::OwnedSemaphorePermit;
use tonic::Status;

use super::admit::place;
use super::error::Error;
use super::filter::Filter;
use super::{Service, view};
use crate::node::{TaskUpdate, UPDATES_MAX, Updates, UpdatesEnded};
use crate::wire;
use crate::wire::watch_response::Event;

/// One who watches.
struct Watcher {
    filter: Filter,
    updates: Updates,
    _place: OwnedSemaphorePermit,
}

// === impl Service ===

impl Service {
    pub(super) fn watch_tasks(
        &self,
        request: wire::WatchRequest,
    ) -> Result<BoxStream<'static, Result<wire::WatchResponse, Status>>, Error> {
        let filter = Filter::new(request.filter)?;
        let place = place(&self.shared.watchers, "watchers", self.bounds().watchers_max)?;
        let watcher = Watcher { filter, updates: self.listen()?, _place: place };
        let events = stream::try_unfold(watcher, |mut watcher| async move {
            let event = watcher.next().await?;
            Ok::<_, Status>(Some((wire::WatchResponse { event: Some(event) }, watcher)))
        });
        Ok(events.boxed())
    }
}

// === impl Watcher ===

impl Watcher {
    async fn next(&mut self) -> Result<Event, Error> {
        loop {
            match self.updates.next().await {
                Ok(TaskUpdate::Changed(record)) if self.filter.passes(&record) => {
                    return Ok(Event::Changed(Box::new(view::task(&record))));
                }
                Ok(TaskUpdate::Changed(_)) => {}
                // What it was like is not known any more, only what it was called.
                Ok(TaskUpdate::Deleted(id)) if self.filter.has_prefix(id) => {
                    return Ok(Event::Deleted(id.to_string()));
                }
                Ok(TaskUpdate::Deleted(_)) => {}
                Err(UpdatesEnded::TooSlow) => return Err(Error::TooSlow { max: UPDATES_MAX }),
                Err(UpdatesEnded::Stopped) => return Err(Error::Stopping),
            }
        }
    }
}
