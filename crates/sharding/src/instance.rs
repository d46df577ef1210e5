//! The library for sharded controllers: an instance keeps its Lease, works on what carries its id, and
//! lets go of what it is asked for. A shell over [`core::instance`](crate::core::instance), which
//! decides.
//!
//! | module | owns |
//! |---|---|
//! | `options`, `error`, `join` | how to join, and why not |
//! | `desk` | the core, what runs, and what is to be done |
//! | `reconcile`, `leash` | a user's reconcile under guard |
//! | `predicate`, `assignments` | noticing that an object has been away |
//! | `driver` | carrying out what was decided |
//! | `lease`, `kind`, `drain_feed`, `stateful_set` | what is asked of the API server |
//! | `lifecycle`, `metrics`, `standing` | the task; counting; how it ended |
//!
//! Five lines make a controller a sharded one:
//!
//! ```no_run
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use futures::StreamExt;
//! use k8s_openapi::api::core::v1::{ConfigMap, Secret};
//! use kube::runtime::controller::{Action, Controller};
//! use kube::{Api, Client};
//! use sharding::instance::{JoinOptions, Shard, Stop};
//!
//! async fn reconcile(secret: Arc<Secret>, client: Arc<Client>) -> Result<Action, kube::Error> {
//!     # let _ = (secret, client);
//!     Ok(Action::await_change())
//! }
//!
//! # async fn run(client: Client) -> Result<(), Box<dyn std::error::Error>> {
//! let options = JoinOptions::ring("secrets").id("checksums-0");
//! let shard = Shard::join(client.clone(), options).await?;
//! let secrets: Api<Secret> = Api::all(client.clone());
//! let config_maps: Api<ConfigMap> = Api::all(client.clone());
//! let worked = Controller::new(secrets, shard.config())
//!     .owns(config_maps, shard.config())
//!     .run(
//!         shard.wrap(reconcile),
//!         |_, _, _| Action::requeue(Duration::from_secs(5)),
//!         Arc::new(client),
//!     );
//! shard.outcomes(worked).for_each(|_| async {}).await;
//! shard.stop(Stop::Release).await?;
//! # Ok(())
//! # }
//! ```
//!
//! What it cannot do: a request that was sent, a task that was spawned and code that blocks go on after
//! their reconcile was stopped. The fence refuses what they still write; calls to outside systems need
//! to be idempotent, and may carry [`Shard::term`].

mod assignments;
mod desk;
mod drain_feed;
mod driver;
mod error;
mod join;
mod kind;
mod lease;
mod leash;
mod lifecycle;
mod metrics;
mod options;
mod predicate;
mod reconcile;
mod standing;
mod stateful_set;
#[cfg(test)]
mod tests;

use std::error::Error as StdError;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use futures::{Stream, StreamExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::controller::{Action, Error as ControllerError};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::{Predicate, watcher};
use kube::{Client, Config, Resource};

use self::desk::Desk;
use self::kind::{Selectors, Subject};
use self::lifecycle::Keeping;
use self::standing::{End, Standing};
use self::stateful_set::StatefulSet;
use crate::core::names::{InstanceId, Names};
use crate::core::object::{GroupKind, Object};
use crate::core::spec::GroupResource;
use crate::kubernetes;

pub use self::error::Error;
pub use self::metrics::Metrics;
pub use self::options::{JoinOptions, Pod};
pub use self::reconcile::Reconcile;
pub use crate::core::instance::{JoinError, Loss, Stop};

/// One outcome of a controller's work.
type Worked<K, E, Q> = Result<(ObjectRef<K>, Action), ControllerError<E, Q>>;

/// A place in a ring. Clones are the same place; when the last is dropped, the Lease is left to expire
/// and everything that was begun under it is stopped.
#[derive(Clone)]
pub struct Shard {
    seat: Arc<Seat>,
}

/// What a place consists of.
struct Seat {
    names: Names,
    id: InstanceId,
    incarnation: String,
    stateful_set: Option<StatefulSet>,
    desk: Arc<Desk>,
    standing: Arc<Standing>,
    _keeping: Keeping,
}

// === impl Shard ===

impl Shard {
    /// Reads the ring, takes the Lease and waits until objects may be worked on. That takes a while if
    /// another process had the Lease and is not known to have ended. How long a reconcile of an object
    /// that is to be given up may go on, the Ring's `graceSeconds`, is read here and nowhere else.
    pub async fn join(client: Client, options: JoinOptions) -> Result<Self, Error> {
        let seat = join::join(client, options).await?;
        if !seat.standing.works().await {
            return Err(match seat.standing.end() {
                Some(End::Lost(Loss::Join(error))) => Error::Refused(error.clone()),
                Some(End::Lost(loss)) => Error::Lost(loss.clone()),
                Some(End::Left) | None => Error::Abandoned,
            });
        }
        tracing::info!(ring = %seat.names.ring(), id = %seat.id, "joined the ring");
        Ok(Self { seat: Arc::new(seat) })
    }

    #[must_use]
    pub fn id(&self) -> &str {
        self.seat.id.as_str()
    }

    /// Random for each start of a process: tells an instance from the one before it.
    #[must_use]
    pub fn incarnation(&self) -> &str {
        &self.seat.incarnation
    }

    /// Selects our own objects, of main kinds and of those that they own. What is listed is listed as it
    /// is now: a list out of a cache could show what was ours before.
    #[must_use]
    pub fn config(&self) -> watcher::Config {
        watcher::Config::default().labels(&Selectors::new(&self.seat.names, &self.seat.id).own)
    }

    /// Guards a reconcile of a main kind: it begins for objects that are ours and not to be given up,
    /// and takes no step once the Lease may be another's. One that is skipped or stopped counts as done.
    pub fn wrap<K, Ctx, R, F>(
        &self,
        reconcile: R,
    ) -> impl FnMut(Arc<K>, Arc<Ctx>) -> Reconcile<F> + use<K, Ctx, R, F>
    where
        K: Resource<DynamicType: Default>,
        R: FnMut(Arc<K>, Arc<Ctx>) -> F,
    {
        self.wrap_with(reconcile, &K::DynamicType::default())
    }

    /// Like [`wrap`](Self::wrap), for kinds that are known at run time only.
    pub fn wrap_with<K, Ctx, R, F>(
        &self,
        mut reconcile: R,
        dynamic: &K::DynamicType,
    ) -> impl FnMut(Arc<K>, Arc<Ctx>) -> Reconcile<F> + use<K, Ctx, R, F>
    where
        K: Resource,
        R: FnMut(Arc<K>, Arc<Ctx>) -> F,
    {
        let subject = subject::<K>(dynamic);
        self.seat.desk.add_subject(subject.clone());
        let (desk, names) = (Arc::clone(&self.seat.desk), self.seat.names.clone());
        move |object, context| {
            let seen = seen(&names, &subject.kind, object.meta());
            match seen.and_then(|seen| desk.begin(&seen)) {
                Some(run) => Reconcile::new(run, reconcile(object, context)),
                None => Reconcile::skipped(),
            }
        }
    }

    /// The user's predicate, which also lets pass what was given up and came back.
    pub fn predicate<K, P>(&self, predicate: P) -> impl Predicate<K> + use<K, P>
    where
        K: Resource<DynamicType: Default>,
        P: Predicate<K>,
    {
        let kind = subject::<K>(&K::DynamicType::default()).kind;
        let (desk, names) = (Arc::clone(&self.seat.desk), self.seat.names.clone());
        move |object: &K| {
            let users = predicate.hash_property(object)?;
            let seen = seen(&names, &kind, object.meta())?;
            Some(predicate::mixed(users, desk.assignment(&seen.name), &seen))
        }
    }

    /// Marks a child as ours, before it is created: so it need not be assigned. The object has to have
    /// an owner that controls it, or the fence refuses it.
    pub fn stamp(&self, metadata: &mut ObjectMeta) {
        let labels = metadata.labels.get_or_insert_default();
        labels.insert(self.seat.names.shard_label(), self.seat.id.to_string());
    }

    /// Ends when the place is lost or given back, and never before.
    pub fn lost(&self) -> impl Future<Output = ()> + Send + Sync + use<> {
        self.seat.standing.over().cancelled_owned()
    }

    /// What a controller does until the place is lost or given back, without objects that had left
    /// before their turn came: that is how sharding works, and nothing failed.
    ///
    /// This ends the controller, which needs no `graceful_shutdown_on`: nothing is begun by then, and
    /// kube's own way to end waits for ever if its first list has not come.
    pub fn outcomes<K, E, Q, W>(
        &self,
        worked: W,
    ) -> impl Stream<Item = Worked<K, E, Q>> + use<K, E, Q, W>
    where
        K: Resource<DynamicType: Debug + Eq + Hash + Clone>,
        E: 'static,
        Q: 'static,
        W: Stream<Item = Worked<K, E, Q>>,
    {
        let is_told = |outcome: &Worked<K, E, Q>| {
            std::future::ready(!matches!(outcome, Err(ControllerError::ObjectNotFound(_))))
        };
        worked.filter(is_told).take_until(self.lost())
    }

    /// Why the place was lost, if it was.
    #[must_use]
    pub fn loss(&self) -> Option<&Loss> {
        match self.seat.standing.end()? {
            End::Lost(loss) => Some(loss),
            End::Left => None,
        }
    }

    /// How often the Lease has changed hands: grows with each owner, for those who fence by a number.
    #[must_use]
    pub fn term(&self) -> i32 {
        self.seat.desk.term().unwrap_or_default()
    }

    /// Gives the place back in order: nothing begins any more, what runs may finish, then the Lease is
    /// released or held, and [`lost`](Self::lost) ends. Waits for as long as reconciles take.
    pub async fn stop(&self, stop: Stop) -> Result<(), Error> {
        let stop = self.seat.meant(stop).await;
        self.seat.desk.tell(crate::core::instance::Event::Stop(stop));
        self.lost().await;
        match self.seat.standing.end() {
            Some(End::Left) => Ok(()),
            Some(End::Lost(loss)) => Err(Error::Lost(loss.clone())),
            None => Err(Error::Abandoned),
        }
    }
}

// === impl Seat ===

impl Seat {
    /// A place that nobody will come back to is not held.
    async fn meant(&self, stop: Stop) -> Stop {
        let (Stop::Hold(_), Some(set)) = (stop, &self.stateful_set) else { return stop };
        match set.wants(&self.id).await {
            Ok(true) => stop,
            Ok(false) => Stop::Release,
            Err(error) => {
                let error: &dyn StdError = &error;
                tracing::warn!(error, "cannot tell a restart from a scale-down, holding the place");
                stop
            }
        }
    }
}

/// A client for Leases, as [`JoinOptions::lease_client`] wants it: it repeats nothing, and has its
/// connections to itself.
pub fn lease_client(mut config: Config) -> kube::Result<Client> {
    config.default_retry = false;
    Client::try_from(config)
}

fn subject<K: Resource>(dynamic: &K::DynamicType) -> Subject {
    let group = K::group(dynamic).into_owned();
    let resource =
        GroupResource { group: group.clone(), resource: K::plural(dynamic).into_owned() };
    Subject { kind: GroupKind { group, kind: K::kind(dynamic).into_owned() }, resource }
}

/// Nothing for what did not come from the server.
fn seen(names: &Names, kind: &GroupKind, metadata: &ObjectMeta) -> Option<Object> {
    match kubernetes::object(names, kind, metadata) {
        Ok(object) => Some(object),
        Err(error) => {
            let error: &dyn StdError = &error;
            tracing::warn!(error, kind = %kind, "an object is no object of the server");
            None
        }
    }
}
