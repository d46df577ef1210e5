//! Gives up the places of callers who went away while they stood in line.
//!
//! A caller's connection can end at any moment, and with it everything that was done for the call.
//! A place left behind would keep everyone after it waiting until its lease ends, so what went away
//! is told here, and one task deletes it.

use std::sync::Arc;

use bytes::Bytes;
use etcd_api::etcdserverpb::{TxnRequest, compare::CompareResult};
use futures::future::join_all;
use mvcc::Revision;
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;

use super::{agent::Agent, line};
use crate::{Error, context::Context};

/// Callers that may stand in lines at once. Each has room here reserved before it takes its place, so
/// that telling of its departure never fails and never waits. More wait before they enter.
const PLACES_MAX: usize = 1 << 20;

/// Places given up in one go, by as many transactions of one batch.
const AT_ONCE_MAX: usize = 256;

/// Where departures are told.
pub(crate) struct Departures {
    sender: mpsc::Sender<Departure>,
    receiver: Mutex<mpsc::Receiver<Departure>>,
}

/// Tells of the departure when it is dropped.
pub(super) struct Guard {
    room: Option<(mpsc::OwnedPermit<Departure>, Departure)>,
}

/// A place that nobody stands at any more.
pub(super) struct Departure {
    agent: Arc<Agent>,
    key: Bytes,
    /// Tells the place from one that the same lease had before or takes later.
    created: (CompareResult, Revision),
}

// === impl Departures ===

impl Default for Departures {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel(PLACES_MAX);
        Self { sender, receiver: Mutex::new(receiver) }
    }
}

// === impl Guard ===

impl Guard {
    /// To be made before the key is put: the put may be carried out although the caller has gone.
    pub(super) async fn new(agent: &Arc<Agent>, key: Bytes) -> Result<Self, Error> {
        let sender = agent.context().departures.sender.clone();
        let permit = sender.reserve_owned().await.map_err(|_closed| Error::Stopped)?;
        let before = agent.context().published.revision();
        let created = (CompareResult::Greater, before);
        Ok(Self { room: Some((permit, Departure { agent: agent.clone(), key, created })) })
    }

    pub(super) fn entered(&mut self, created: Revision) {
        if let Some((_, departure)) = &mut self.room {
            departure.created = (CompareResult::Equal, created);
        }
    }

    pub(super) fn disarm(mut self) {
        self.room = None;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some((permit, departure)) = self.room.take() {
            permit.send(departure);
        }
    }
}

// === impl Departure ===

impl Departure {
    async fn give_up(self) -> Result<(), Error> {
        let (result, revision) = self.created;
        let request = TxnRequest {
            compare: vec![line::created(&self.key, result, revision)],
            ..line::if_still(&self.key, revision, line::deletion(&self.key))
        };
        self.agent.txn(request).await?;
        Ok(())
    }
}

/// Works until `edge_ended`: by then everyone who stood in line has left, and been given up.
pub(crate) async fn run(context: Arc<Context>, edge_ended: CancellationToken) -> Result<(), Error> {
    let mut receiver = context.departures.receiver.lock().await;
    loop {
        let mut departures = Vec::new();
        tokio::select! {
            biased;
            _ = receiver.recv_many(&mut departures, AT_ONCE_MAX) => {}
            () = edge_ended.cancelled() => return Ok(()),
        }
        let given_up = join_all(departures.into_iter().map(Departure::give_up)).await;
        for error in given_up.into_iter().filter_map(Result::err) {
            // The caller's rights, or the store, have ended before its lease.
            let error: &dyn std::error::Error = &error;
            tracing::debug!(error, "a place in line stays until its lease ends");
        }
    }
}
