//! One watch for the store's own use: the services made of keys wait with it.

use std::{collections::VecDeque, sync::Arc};

use etcd_api::{
    ApiError,
    etcdserverpb::{WatchCreateRequest, WatchRequest, watch_request::RequestUnion},
    mvccpb::Event,
};
use mvcc::Revision;
use tokio_util::sync::CancellationToken;

use super::{Session, SessionContext};
use crate::Error;

/// Follows a range. Dropping it ends the watch.
pub(crate) struct Follower {
    session: Session,
    changes: VecDeque<Change>,
    /// Who waits here would hold up the end of the store, as changes are told until then.
    stopping: CancellationToken,
}

/// One change, with the revision of the answer it came in.
pub(crate) struct Change {
    pub(crate) event: Event,
    pub(crate) revision: Revision,
}

// === impl Follower ===

impl Follower {
    /// Starts at once: nothing from the start revision on is missed. Whether the range may be read
    /// is the caller's to know.
    pub(crate) fn new(
        context: Arc<SessionContext>,
        watch: WatchCreateRequest,
        stopping: CancellationToken,
    ) -> Self {
        let mut session = Session::new(context);
        let request = WatchRequest { request_union: Some(RequestUnion::CreateRequest(watch)) };
        session.on_request(request, |_| Ok(()));
        Self { session, changes: VecDeque::new(), stopping }
    }

    /// Waits for the next change. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<Change, Error> {
        loop {
            if let Some(change) = self.changes.pop_front() {
                return Ok(change);
            }
            if let Some(response) = self.session.pop() {
                if response.canceled {
                    return Err(ApiError::Compacted.into());
                }
                let revision = Revision(response.header.unwrap_or_default().revision);
                let changes = response.events.into_iter();
                self.changes.extend(changes.map(|event| Change { event, revision }));
            } else if self.session.is_behind() {
                self.session.advance().await?;
            } else if self.stopping.run_until_cancelled(self.session.turn()).await != Some(true) {
                return Err(Error::Stopped);
            }
        }
    }
}
