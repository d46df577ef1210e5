//! Following a range of keys: a list at one revision, then every change after it, for ever. Whatever
//! breaks is mended here; whoever follows sees a list again only where changes were forgotten.

use std::convert::Infallible;
use std::future::ready;
use std::time::Duration;

use bytes::Bytes;
use etcd_api::etcdserverpb::watch_request::RequestUnion;
use etcd_api::etcdserverpb::{WatchCreateRequest, WatchRequest, WatchResponse};
use etcd_api::mvccpb::{Event, KeyValue};
use futures::{StreamExt, stream};
use tokio::sync::oneshot;
use tonic::metadata::MetadataValue;
use tonic::{Request, Streaming};

use super::{Error, Listed, Store, error};
use crate::core::id::Revision;
use crate::core::keys::KeyRange;

/// Between two tries while the store does not answer.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// What a follower sees.
#[derive(Clone, Debug)]
pub enum Update {
    /// Everything there is. At the start, and again when the store had forgotten the changes between.
    Listed(Vec<KeyValue>, Revision),
    /// Whole revisions, in their order.
    Changed(Vec<Event>),
}

/// Follows one range. Dropping it ends its watch.
#[derive(Debug)]
pub struct Follower {
    store: Store,
    range: KeyRange,
    position: Position,
    is_broken: bool,
}

/// How far a follower is.
#[derive(Debug)]
enum Position {
    /// Knows nothing. A list moves it on.
    Nowhere,
    /// Has seen everything up to here, and waits for a watch to be opened. That moves it on, or back to
    /// `Nowhere` if the store has forgotten what follows.
    At(Revision),
    /// Waits for changes. A broken stream moves it back to `At`.
    Watching(Revision, Box<Watch>),
}

/// An open watch. It ends when both are dropped: as long as more requests could follow, the store is not
/// told that nobody reads its responses.
#[derive(Debug)]
struct Watch {
    responses: Streaming<WatchResponse>,
    _requests: oneshot::Sender<Infallible>,
}

/// Why a watch goes on no more.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error("the list failed")]
    List(#[source] Error),
    #[error("no watch could be opened")]
    Open(#[source] Error),
    #[error("the watch broke")]
    Stream(#[source] Error),
    #[error("the store ended the watch: {0}")]
    Canceled(String),
    #[error("the store has forgotten the changes since revision {0}")]
    Forgotten(Revision),
}

// === impl Store ===

impl Store {
    /// Follows a range from now on.
    #[must_use]
    pub fn follow(&self, range: KeyRange) -> Follower {
        let store = self.clone();
        Follower { store, range, position: Position::Nowhere, is_broken: false }
    }
}

// === impl Follower ===

impl Follower {
    #[must_use]
    pub fn range(&self) -> KeyRange {
        self.range
    }

    /// The next thing to know. Waits out whatever is in the way; must not be dropped while a list is
    /// being read, or that begins anew.
    pub async fn next(&mut self) -> Update {
        loop {
            match self.step().await {
                Ok(Some(update)) => {
                    self.note_mended();
                    return update;
                }
                Ok(None) => {}
                Err(broken) => self.on_broken(broken).await,
            }
        }
    }

    async fn step(&mut self) -> Result<Option<Update>, Broken> {
        match &mut self.position {
            Position::Nowhere => {
                let listed = self.store.list(self.range).await.map_err(Broken::List)?;
                let Listed { kvs, revision } = listed;
                self.position = Position::At(revision);
                Ok(Some(Update::Listed(kvs, revision)))
            }
            Position::At(revision) => {
                let revision = *revision;
                let watch = self.store.watch(self.range, revision).await.map_err(Broken::Open)?;
                self.position = Position::Watching(revision, Box::new(watch));
                Ok(None)
            }
            Position::Watching(revision, watch) => {
                let response = watch.responses.message().await;
                let response = response.map_err(|status| Broken::Stream(Error::new(status)))?;
                let ended = || Broken::Canceled("it said nothing more".to_owned());
                on_response(revision, response.ok_or_else(ended)?)
            }
        }
    }

    /// Goes back to where it can go on from, and says so once.
    async fn on_broken(&mut self, broken: Broken) {
        if !std::mem::replace(&mut self.is_broken, true) {
            tracing::warn!(error = &broken as &dyn std::error::Error, "the store is not followed");
        }
        self.position = match (&broken, &self.position) {
            // An answer that is refused is refused again, unless everything is listed first.
            (Broken::Forgotten(_), _) | (Broken::Stream(Error::Refused(_)), _) => Position::Nowhere,
            (_, Position::Watching(revision, _) | Position::At(revision)) => {
                Position::At(*revision)
            }
            (_, Position::Nowhere) => Position::Nowhere,
        };
        if !matches!(broken, Broken::Forgotten(_)) {
            tokio::time::sleep(RETRY_AFTER).await;
        }
    }

    fn note_mended(&mut self) {
        if std::mem::take(&mut self.is_broken) {
            tracing::info!("the store is followed again");
        }
    }
}

/// Takes in one response; `None` if it tells nothing but how far the store is.
fn on_response(at: &mut Revision, response: WatchResponse) -> Result<Option<Update>, Broken> {
    if response.compact_revision != 0 {
        return Err(Broken::Forgotten(*at));
    }
    if response.canceled {
        return Err(Broken::Canceled(response.cancel_reason));
    }
    let told = response.events.last().map(|event| event.kv().mod_revision());
    let is_progress = response.events.is_empty() && !response.created;
    let header = response.header.filter(|_| is_progress).map(|header| header.revision);
    *at = Revision(told.or(header).unwrap_or(at.0)).max(*at);
    Ok((!response.events.is_empty()).then_some(Update::Changed(response.events)))
}

// === impl Store ===

impl Store {
    /// A watch of what follows `after`. A member of the store that has lost its leader ends it.
    async fn watch(&self, range: KeyRange, after: Revision) -> Result<Watch, Error> {
        let create = WatchCreateRequest {
            key: Bytes::from_static(range.start),
            range_end: Bytes::from_static(range.end),
            start_revision: after.0 + 1,
            progress_notify: true,
            ..Default::default()
        };
        let create = WatchRequest { request_union: Some(RequestUnion::CreateRequest(create)) };
        let (hold, held) = oneshot::channel();
        let no_more = stream::once(held).filter_map(|_dropped| ready(None));
        let mut request = Request::new(stream::once(ready(create)).chain(no_more));
        request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
        let responses = error::answered(self.watch.clone().watch(request)).await?;
        Ok(Watch { responses, _requests: hold })
    }
}
