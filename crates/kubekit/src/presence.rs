//! Who else is at work. Each member of a group keeps a Lease of its own and watches those of the
//! others; who stays silent counts as gone, by the clock of whoever looks.
//!
//! It is a hint for sharing work out, not a lock: two members may see different groups for a while.
//!
//! | module | owns |
//! |---|---|
//! | `heartbeat` | our own Lease |
//! | `observer` | the Leases of all |

mod heartbeat;
mod observer;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::heartbeat::Heartbeat;
use self::observer::Observer;
use crate::lease::WallClock;
use crate::lease::call::Leases;
use crate::lease::object::Claim;

/// How long a request about our own Lease may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Clone, Debug)]
pub struct Options {
    pub namespace: String,
    /// What the names of the group's Leases begin with: `watcher-`.
    pub prefix: String,
    /// Our own id, the rest of our Lease's name; no two processes have the same.
    pub id: String,
    /// Labels of the group's Leases, by which they are found.
    pub labels: BTreeMap<String, String>,
    /// A member silent for this long counts as gone.
    pub duration: Duration,
    /// How often we give a sign of life.
    pub renew_every: Duration,
    pub clock: WallClock,
}

/// Keeps our own Lease, and watches those of the others.
pub struct Service {
    heartbeat: Heartbeat,
    observer: Observer,
}

/// Knows who is at work.
#[derive(Clone, Debug)]
pub struct Handle {
    members: watch::Receiver<Members>,
}

/// The ids of all members that are at work, our own always among them.
pub type Members = Arc<BTreeSet<String>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a member that counts as gone after {duration:?} must renew more often than every {renew_every:?}"
)]
pub struct InvalidOptions {
    pub duration: Duration,
    pub renew_every: Duration,
}

pub fn new(client: Client, options: Options) -> Result<(Service, Handle), InvalidOptions> {
    let Options { namespace, prefix, id, labels, duration, renew_every, clock } = options;
    if renew_every >= duration {
        return Err(InvalidOptions { duration, renew_every });
    }
    let (sender, members) = watch::channel(Arc::new(BTreeSet::from([id.clone()])));
    let leases = Leases::new(client.clone(), &namespace, REQUEST_TIMEOUT);
    let claim = Claim { holder: id.clone(), duration, labels: labels.clone() };
    let heartbeat =
        Heartbeat::new(leases.clone(), format!("{prefix}{id}"), claim, renew_every, clock);
    let api: Api<Lease> = Api::namespaced(client, &namespace);
    let group = observer::Group { prefix, id, labels, duration };
    let observer = Observer::new(api, leases, group, sender);
    Ok((Service { heartbeat, observer }, Handle { members }))
}

// === impl Service ===

impl Service {
    /// Works until `shutdown`, and then tells the others that we are gone.
    pub async fn run(self, shutdown: CancellationToken) {
        tokio::join!(self.heartbeat.run(&shutdown), self.observer.run(&shutdown));
    }
}

// === impl Handle ===

impl Handle {
    /// Who is at work now.
    #[must_use]
    pub fn members(&self) -> Members {
        self.members.borrow().clone()
    }

    /// Waits until that has changed. Nothing, if the service has ended.
    pub async fn changed(&mut self) -> Option<Members> {
        self.members.changed().await.ok()?;
        Some(self.members.borrow_and_update().clone())
    }
}
