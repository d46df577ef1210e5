//! What people ask of the service, and what they do by hand. Returns data and prints nothing;
//! writes only under the guards that the services themselves write under.
//!
//! | module | answers |
//! |---|---|
//! | [`list`] | whose labels are stored or queued |
//! | [`show`] | everything about one node, and what would happen next |
//! | [`diff`] | what a restore would change |
//! | [`restore`] | a restore by hand |
//! | [`history`] | the snapshots that are kept |
//! | [`forget`] | a record deleted, and what would bring it back |
//! | [`transfer`] | all records out, and in again |
//! | [`uninstall`] | our marks off all nodes, and the stores emptied |

pub mod diff;
mod error;
pub mod forget;
pub mod history;
pub mod list;
pub mod restore;
pub mod show;
#[cfg(test)]
mod tests;
pub mod transfer;
pub mod uninstall;

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use kubekit::{
    lease::{WallClock, core::Timings},
    lock::{self, Locks},
};

pub use self::error::Error;
use crate::{
    core::{
        keys::{MANAGED_BY, MANAGER},
        names::{NodeHash, TransactionName},
        object::{Document, LiveNode},
        policy::Policy,
        record::{Record, Stored, Unreadable},
        rv::ResourceVersion,
        snapshot::Snapshot,
    },
    kubernetes::{Objects, document},
    options::Namespaces,
};

/// What the commands need to know. They decide as the services do if the policy is theirs.
#[derive(Clone)]
pub struct Options {
    pub client: Client,
    /// One that never repeats a request; see [`Locks::new`].
    pub lease_client: Client,
    pub namespaces: Namespaces,
    pub policy: Policy,
    /// As whom locks are held.
    pub identity: String,
    pub clock: WallClock,
}

/// A cluster, seen by a person.
pub struct Admin {
    objects: Objects,
    locks: Locks,
    lock_leases: Api<Lease>,
    /// Those by which the services show that they live.
    life_leases: Api<Lease>,
    policy: Policy,
    clock: WallClock,
}

/// Whether a command writes what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Everything is read and decided; nothing is written.
    DryRun,
    Write,
}

// === impl Admin ===

impl Admin {
    /// Talks to nobody yet.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let Options { client, lease_client, namespaces, policy, identity, clock } = options;
        let namespace = |name: &str| Api::namespaced(lease_client.clone(), name);
        let lock_leases = namespace(&namespaces.transactions);
        let life_leases = namespace(&namespaces.checkpoints);
        let locks = lock::Options {
            namespace: namespaces.transactions.clone(),
            holder: identity,
            labels: [(MANAGED_BY.to_owned(), MANAGER.to_owned())].into(),
            timings: Timings::LOCK,
            clock,
        };
        let locks = Locks::new(lease_client, locks).expect("these timings are valid");
        let objects = Objects::new(&client, &namespaces);
        Self { objects, locks, lock_leases, life_leases, policy, clock }
    }

    fn now(&self) -> jiff::Timestamp {
        (self.clock)()
    }

    /// The record, which must be there and readable.
    async fn record(&self, node: &str) -> Result<Record, Error> {
        let document = self.objects.records.get(node).await?;
        match Stored::read(document.as_ref()) {
            Stored::Record(record) => Ok(*record),
            Stored::Absent | Stored::Unreadable(Unreadable::Foreign) => {
                Err(Error::NoRecord { node: node.to_owned() })
            }
            Stored::Unreadable(source) => Err(Error::Unreadable { node: node.to_owned(), source }),
        }
    }

    /// The node, which must be there and stay.
    async fn live(&self, node: &str) -> Result<LiveNode, Error> {
        let live = self.objects.nodes.get(node).await?;
        let live = live.ok_or_else(|| Error::NoNode { node: node.to_owned() })?;
        match live.is_terminating {
            true => Err(Error::Terminating { node: node.to_owned() }),
            false => Ok(live),
        }
    }

    async fn records(&self) -> Result<Vec<Document>, Error> {
        let listing = self.objects.records.list().await?;
        Ok(listing.items.into_iter().map(document).collect())
    }

    /// The queue of one node, in its order.
    async fn queue(&self, node: &str) -> Result<Vec<(TransactionName, Document)>, Error> {
        let hash = NodeHash::of(node);
        let listing = self.objects.transactions.list().await?;
        let mut queue: Vec<(TransactionName, Document)> = listing
            .items
            .into_iter()
            .map(document)
            .filter_map(|document| Some((document.name.parse().ok()?, document)))
            .filter(|(name, _): &(TransactionName, Document)| *name.node() == hash)
            .collect();
        queue.sort_by(|(one, _), (other, _)| one.rv().cmp(other.rv()));
        Ok(queue)
    }
}

/// The snapshot that is meant: the record's, or an older one.
fn snapshot<'a>(record: &'a Record, from: Option<&ResourceVersion>) -> Result<&'a Snapshot, Error> {
    let Some(rv) = from else { return Ok(&record.snapshot) };
    record
        .at(rv)
        .ok_or_else(|| Error::NoSnapshot { node: record.snapshot.node.clone(), rv: rv.clone() })
}
