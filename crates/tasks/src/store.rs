//! The store as a node and its clients use it: transactions whose outcome is known or said not to be,
//! lists at one revision, changes after them, leases. Carries out what the core plans and decides
//! nothing itself.
//!
//! What is said of each call holds for etcd and for windlass alike. All reads are linearizable.

mod cancel;
mod connect;
mod error;
mod follow;
mod fsck;
mod gc;
mod keeper;
mod lease;
mod list;
mod submit;

use std::time::Duration;

use etcd_api::etcdserverpb::kv_client::KvClient;
use etcd_api::etcdserverpb::lease_client::LeaseClient;
use etcd_api::etcdserverpb::watch_client::WatchClient;
use tokio::time::Instant;
use tonic::transport::Channel;
use uuid::Uuid;

use crate::clock::Clock;
use crate::core::agent::RESEND_AFTER;
use crate::core::id::{TaskId, WriteId};
use crate::core::keys::Key;
use crate::core::record::Record;
use crate::core::transition::{Plan, Settled, Stamp};
use crate::core::txn::{Answer, Op, Txn};

pub use cancel::{CancelError, Canceled};
pub use connect::{ConnectError, Options, Tls};
pub use error::{Error, Silence};
pub use follow::{Follower, Update};
pub use fsck::{Checked, FsckError};
pub use gc::GcError;
pub(crate) use keeper::{Keeper, Order, Pulse, Reins};
pub use lease::Granted;
pub use list::{Listed, PAGE_MAX, Page};
pub use submit::{SubmitFailed, Submitted};

/// A request that takes longer has an unknown outcome. Longer than a store takes that syncs to a slow
/// disk; much shorter than a lease.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

/// What one answer may have. A page of the largest tasks has 32 MiB, and a watch that catches up can
/// have several of them.
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// A connection to the store. Cheap to clone; all clones share it. Connects when first used, and again
/// whenever it is broken.
#[derive(Clone, Debug)]
pub struct Store {
    kv: KvClient<Channel>,
    watch: WatchClient<Channel>,
    lease: LeaseClient<Channel>,
    clock: Clock,
}

// === impl Store ===

impl Store {
    /// Prepares a connection; nobody need be there yet. Must be called within a tokio runtime, which
    /// then carries it.
    pub fn connect(options: &Options, clock: Clock) -> Result<Self, ConnectError> {
        let channel = connect::channel(options)?;
        Ok(Self {
            kv: KvClient::new(channel.clone()).max_decoding_message_size(ANSWER_BYTES_MAX),
            watch: WatchClient::new(channel.clone()).max_decoding_message_size(ANSWER_BYTES_MAX),
            lease: LeaseClient::new(channel),
            clock,
        })
    }

    /// Carries out a transaction, once.
    pub async fn txn(&self, txn: &Txn) -> Result<Answer, Error> {
        let mut kv = self.kv.clone();
        let response = error::answered(kv.txn(txn.to_request())).await?;
        Answer::new(response).map_err(Error::Answer)
    }

    /// Sends the same transaction until its outcome is known, or until `until`: then it is unknown.
    /// It must be one that can be recognised when it was carried out before, as every [`Plan`]'s can.
    pub async fn insist(&self, txn: &Txn, until: Instant) -> Result<Answer, Error> {
        loop {
            match tokio::time::timeout_at(until, self.txn(txn)).await {
                Ok(Err(Error::Unknown(silence))) => {
                    tracing::debug!(?silence, "a transaction is sent again");
                    if Instant::now() + RESEND_AFTER >= until {
                        return Err(Error::Unknown(silence));
                    }
                    tokio::time::sleep(RESEND_AFTER).await;
                }
                Ok(known) => return known,
                Err(_elapsed) => return Err(Error::Unknown(Silence::TimedOut)),
            }
        }
    }

    /// Carries out a plan and tells what became of it.
    pub async fn settle(&self, plan: &Plan, until: Instant) -> Result<Settled, Error> {
        let answer = self.insist(&plan.txn, until).await?;
        plan.settle(&answer).map_err(Error::Settle)
    }

    /// A task as it is now; `None` if there is none.
    pub async fn get(&self, id: TaskId) -> Result<Option<Record>, Error> {
        let answer = self.txn(&Txn::read(vec![Op::Get(Key::Task(id))])).await?;
        let found = answer.found(0).map_err(Error::Answer)?;
        found.map(Record::decode).transpose().map_err(Error::Record)
    }

    /// For a change that is made now.
    fn stamp(&self) -> Stamp {
        Stamp { now: self.clock.wall(), write_id: WriteId(Uuid::new_v4()) }
    }
}
