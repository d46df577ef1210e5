//! Watch: changes as they come in. A reader that is too slow is cut off instead of holding up the
//! node: nothing is buffered for it beyond what the node keeps for all.

use futures::future::{BoxFuture, FutureExt};
use futures::stream::{self, BoxStream, StreamExt};
use tokio::sync::OwnedSemaphorePermit;
use tonic::Status;

use super::admit::place;
use super::error::Error;
use super::filter::Filter;
use super::{Service, view};
use crate::node::{Gone, Handle, Standing, TaskUpdate, UPDATES_MAX, Updates, UpdatesEnded};
use crate::wire;
use crate::wire::watch_response::Event;

/// One who watches.
struct Watcher {
    filter: Filter,
    updates: Updates,
    /// Comes to its end with the node's lease.
    cut_off: BoxFuture<'static, Error>,
    _place: OwnedSemaphorePermit,
}

// === impl Service ===

impl Service {
    /// Begins only while the store answers, and ends where changes could be missed unnoticed.
    pub(super) async fn watch_tasks(
        &self,
        request: wire::WatchRequest,
    ) -> Result<BoxStream<'static, Result<wire::WatchResponse, Status>>, Error> {
        let filter = Filter::new(request.filter)?;
        let place = place(&self.shared.watchers, "watchers", self.bounds().watchers_max)?;
        let updates = self.listen()?;
        self.nodes_known().await?;
        let cut_off = cut_off(self.node().clone()).boxed();
        let watcher = Watcher { filter, updates, cut_off, _place: place };
        let events = stream::try_unfold(watcher, |mut watcher| async move {
            let event = watcher.next().await?;
            Ok::<_, Status>(Some((wire::WatchResponse { event: Some(event) }, watcher)))
        });
        Ok(events.boxed())
    }
}

/// Waits until a node that holds its lease has lost it. One that has left has none to lose.
pub(super) async fn cut_off(node: Handle) -> Error {
    let is_in_place = |it: &Standing| it.node.is_some() || it.has_left;
    let lost = match node.until_standing(is_in_place).await {
        Ok(_) => node.until_standing(|it| !is_in_place(it)).await,
        Err(gone) => Err(gone),
    };
    match lost {
        Ok(_) => Error::CutOff,
        Err(Gone) => Error::Stopping,
    }
}

// === impl Watcher ===

impl Watcher {
    async fn next(&mut self) -> Result<Event, Error> {
        loop {
            let update = tokio::select! {
                update = self.updates.next() => update,
                error = &mut self.cut_off => return Err(error),
            };
            match update {
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
