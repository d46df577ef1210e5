//! What a ring needs before it can work, while we lead: its kinds as the server knows them, our rights,
//! the fence, the finalizer; and what it needs at its end. Never touches an object of the ring.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kubekit::access::{self, Need, describe, missing};
use kubekit::backoff::Backoff;
use kubekit::election;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::Context;
use super::fence::{Fence, Fencing};
use super::plan::{Arrangement, Named, Problem, check, contested, kinds_of, labelled, work};
use super::supervisor::View;
use crate::core::names::Names;
use crate::core::spec::{DeletionPolicy, GroupResource, Namespace, Resource};
use crate::kubernetes::{self, FINALIZER, Meaning, Objects, Ring, Served, discover};

/// How often it is looked whether anything has changed that nobody told.
const LOOK_EVERY: Duration = Duration::from_mins(5);
/// How often it is looked whether what leaves the ring has been stripped.
const STRIPPED_EVERY: Duration = Duration::from_secs(2);
/// How long to wait after a failure, or while something is missing.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_mins(5);

/// What is done to objects of a ring's kinds.
const VERBS: [&str; 4] = ["get", "list", "watch", "patch"];

/// What the driver is told. Nothing while somebody else leads.
pub(super) type Arranged = Option<Arc<Arrangement>>;

pub(super) struct Upkeep {
    context: Arc<Context>,
    names: Names,
    view: watch::Receiver<View>,
    standing: election::Handle,
    arranged: watch::Sender<Arranged>,
    /// Told by whoever was refused something.
    in_doubt: Arc<Notify>,
    fence: Fence,
    backoff: Backoff,
}

/// A step that failed. What was arranged before stands.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("the finalizer cannot be set or removed")]
    Finalizer(#[source] kubernetes::Error),
    #[error("it cannot be kept which kinds have labels")]
    Resources(#[source] kubernetes::Error),
    #[error("a kind cannot be looked up")]
    Discover(#[source] kubernetes::Error),
    #[error("our rights are not known")]
    Access(#[source] access::Error),
    #[error("it is not known whether labels are left")]
    Stripped(#[source] kubernetes::Error),
    #[error("the fence cannot be removed")]
    Fence(#[source] kubernetes::Error),
}

/// What of a view upkeep is about; the rest, such as a status, changes all the time.
#[derive(PartialEq)]
struct Concern {
    generation: Option<i64>,
    is_deleted: bool,
    has_finalizer: bool,
    labelled: Vec<Resource>,
    rings: Vec<(Option<String>, Option<i64>)>,
    namespaces: Arc<Vec<Namespace>>,
}

// === impl Upkeep ===

impl Upkeep {
    pub(super) fn new(
        context: Arc<Context>,
        names: Names,
        (view, standing): (watch::Receiver<View>, election::Handle),
        (arranged, in_doubt): (watch::Sender<Arranged>, Arc<Notify>),
    ) -> Self {
        let fence = Fence::new(context.client.clone(), &names);
        let backoff = Backoff::new(RETRY_FIRST, RETRY_MAX);
        Self { context, names, view, standing, arranged, in_doubt, fence, backoff }
    }

    pub(super) async fn run(mut self, stop: CancellationToken) {
        let work = async {
            while let Some(term) = self.standing.elected().await {
                let mut standing = self.standing.clone();
                tokio::select! {
                    () = standing.lost(term) => {}
                    () = self.tend() => {}
                }
                self.arranged.send_replace(None);
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = work => stop.cancelled().await,
        }
    }

    /// Looks after the ring for as long as we lead.
    async fn tend(&mut self) {
        loop {
            let view = self.view.borrow_and_update().clone();
            let next = self.look(&view).await;
            let concern = Concern::of(&view);
            let changed = async {
                loop {
                    if self.view.changed().await.is_err() {
                        return std::future::pending().await;
                    }
                    if Concern::of(&self.view.borrow_and_update()) != concern {
                        return;
                    }
                }
            };
            tokio::select! {
                () = changed => {}
                () = self.in_doubt.notified() => {}
                () = tokio::time::sleep(next) => {}
            }
        }
    }

    /// How long to wait before the next look.
    async fn look(&mut self, view: &View) -> Duration {
        let context = self.context.clone();
        let Ok(_permit) = context.upkeep_workers.acquire().await else { return RETRY_MAX };
        match self.arrange(view).await {
            Ok((arrangement, next)) => {
                let is_well = arrangement.problems.is_empty()
                    && !matches!(
                        arrangement.fencing,
                        Fencing::Failed(_) | Fencing::Missing | Fencing::Outdated
                    );
                if is_well {
                    self.backoff.on_success();
                }
                let arrangement = Some(Arc::new(arrangement));
                self.arranged.send_if_modified(|current| {
                    let is_new = *current != arrangement;
                    *current = arrangement;
                    is_new
                });
                if is_well { next } else { next.min(self.backoff.on_failure(rand::random())) }
            }
            // Somebody wrote the Ring meanwhile, often our own status; it is seen soon.
            Err(error) if error.is_conflict() => RETRY_FIRST,
            Err(error) => {
                let wait = self.backoff.on_failure(rand::random());
                let (ring, error) = (self.names.ring(), &error as &dyn std::error::Error);
                tracing::warn!(%ring, error, ?wait, "the ring is prepared later");
                wait
            }
        }
    }

    async fn arrange(&mut self, view: &View) -> Result<(Arrangement, Duration), Error> {
        let ring = &*view.ring;
        let problems = check(ring, &self.names);
        if !problems.is_empty() || (ring.is_deleted() && Self::is_over(ring)) {
            if ring.is_deleted() {
                self.let_go(ring).await?;
            }
            return Ok((Self::idle(ring, problems), LOOK_EVERY));
        }
        if !ring.is_deleted() && !ring.has_finalizer() {
            self.hold(ring).await?;
            // The Ring has another version now; it is seen soon.
            return Ok((Self::idle(ring, problems), STRIPPED_EVERY));
        }
        self.prepare(view).await
    }

    /// Finds out what of the Ring can be worked on, and sees to it that it can.
    async fn prepare(&mut self, view: &View) -> Result<(Arrangement, Duration), Error> {
        let (ring, mut problems) = (&*view.ring, Vec::new());
        let labelled = labelled(ring);
        self.remember(ring, &labelled).await?;
        let kinds = kinds_of(ring, &labelled);
        let served = self.served(&kinds, &mut problems).await?;
        let of_cluster = served.iter().filter(|(_, served)| !served.is_namespaced);
        let of_cluster = of_cluster.map(|(resource, _)| resource.clone()).collect();
        if !ring.is_deleted() {
            problems.extend(contested(view, &self.context.home, &of_cluster));
        }
        // What we may not see may have labels.
        let sees_all = !problems.iter().any(|it| matches!(it, Problem::Denied(_)));
        let is_stripped = sees_all && self.is_stripped(&kinds, &served).await?;
        if is_stripped {
            self.on_stripped(ring, &labelled).await?;
        }
        let is_over = is_stripped && ring.is_deleted();
        if is_over || problems.iter().any(Problem::is_fatal) {
            return Ok((Self::idle(ring, problems), LOOK_EVERY));
        }
        let home = self.context.home.clone();
        let fencing = self.fence.tend((&self.names, &ring.spec, &home)).await;
        let work = work((view, &self.names, &home), &labelled, &served);
        let next = self.next_look(is_stripped);
        let generation = ring.metadata.generation;
        Ok((Arrangement { generation, problems, fencing, work: Some(work) }, next))
    }

    fn next_look(&self, is_stripped: bool) -> Duration {
        let settled = self.fence.settles_in().unwrap_or(LOOK_EVERY);
        if is_stripped { settled.min(LOOK_EVERY) } else { STRIPPED_EVERY }
    }

    fn idle(ring: &Ring, problems: Vec<Problem>) -> Arrangement {
        let generation = ring.metadata.generation;
        Arrangement { generation, problems, fencing: Fencing::Off, work: None }
    }

    /// Whether a deleted Ring has nothing left to do but to go.
    fn is_over(ring: &Ring) -> bool {
        ring.spec.deletion_policy == DeletionPolicy::KeepLabels || !ring.has_finalizer()
    }

    async fn hold(&self, ring: &Ring) -> Result<(), Error> {
        let mut finalizers = ring.metadata.finalizers.clone().unwrap_or_default();
        finalizers.push(FINALIZER.to_owned());
        let written = self.context.rings.write_finalizers(ring, &finalizers).await;
        written.map(|_| ()).map_err(Error::Finalizer)
    }

    /// Lets a deleted Ring go, and its fence with it.
    async fn let_go(&mut self, ring: &Ring) -> Result<(), Error> {
        if !ring.has_finalizer() {
            return Ok(());
        }
        self.fence.remove(&ring.spec).await.map_err(Error::Fence)?;
        let finalizers = ring.metadata.finalizers.iter().flatten();
        let others: Vec<String> = finalizers.filter(|it| *it != FINALIZER).cloned().collect();
        match self.context.rings.write_finalizers(ring, &others).await {
            Err(error) if error.meaning() != Meaning::Gone => Err(Error::Finalizer(error)),
            _ => Ok(()),
        }
    }

    /// Keeps which kinds may have labels, before the first of them is labelled.
    async fn remember(&self, ring: &Ring, labelled: &[Resource]) -> Result<(), Error> {
        let kept = ring.status.as_ref().map_or(&[][..], |status| &status.resources);
        if kept == labelled {
            return Ok(());
        }
        let (name, version) = (self.names.ring().as_str(), ring.version());
        let written = self.context.rings.write_resources(name, labelled, &version).await;
        written.map(|_| ()).map_err(Error::Resources)
    }

    /// Of these kinds, those that there are and that we may touch.
    async fn served(
        &self,
        kinds: &[Named],
        problems: &mut Vec<Problem>,
    ) -> Result<BTreeMap<GroupResource, Served>, Error> {
        let mut served = BTreeMap::new();
        for Named { resource, is_leaving } in kinds {
            match discover(&self.context.client, resource).await.map_err(Error::Discover)? {
                Some(found) => {
                    served.insert(resource.clone(), found);
                }
                None if *is_leaving => {}
                None => problems.push(Problem::Missing(resource.clone())),
            }
        }
        let needs: Vec<Need> = served.keys().flat_map(needs).collect();
        let denied = missing(&self.context.client, &needs).await.map_err(Error::Access)?;
        if !denied.is_empty() {
            problems.push(Problem::Denied(describe(&denied)));
        }
        let denied: BTreeSet<GroupResource> = denied.into_iter().map(resource_of).collect();
        served.retain(|resource, _| !denied.contains(resource));
        Ok(served)
    }

    /// Whether nothing that leaves the ring has its labels.
    async fn is_stripped(
        &self,
        kinds: &[Named],
        served: &BTreeMap<GroupResource, Served>,
    ) -> Result<bool, Error> {
        let leaving = kinds.iter().filter(|kind| kind.is_leaving);
        for served in leaving.filter_map(|kind| served.get(&kind.resource)) {
            let client = self.context.client.clone();
            let objects = Objects::new(client, self.names.clone(), served.clone());
            let page = objects.page(&self.names.shard_label(), None).await;
            if !page.map_err(Error::Stripped)?.objects.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn on_stripped(&mut self, ring: &Ring, labelled: &[Resource]) -> Result<(), Error> {
        if ring.is_deleted() {
            return self.let_go(ring).await;
        }
        if labelled == ring.spec.resources {
            return Ok(());
        }
        self.remember(ring, &ring.spec.resources).await
    }
}

// === impl Error ===

impl Error {
    fn is_conflict(&self) -> bool {
        match self {
            Self::Finalizer(error) | Self::Resources(error) => error.meaning() == Meaning::Conflict,
            _ => false,
        }
    }
}

// === impl Concern ===

impl Concern {
    fn of(view: &View) -> Self {
        let View { ring, rings, namespaces } = view;
        let named = |ring: &Arc<Ring>| (ring.metadata.name.clone(), ring.metadata.generation);
        Self {
            generation: ring.metadata.generation,
            is_deleted: ring.is_deleted(),
            has_finalizer: ring.has_finalizer(),
            labelled: labelled(ring),
            rings: rings.iter().map(named).collect(),
            namespaces: namespaces.clone(),
        }
    }
}

fn needs(resource: &GroupResource) -> Vec<Need> {
    Need::each(&VERBS, resource.group.clone(), resource.resource.clone(), None)
}

fn resource_of(need: Need) -> GroupResource {
    GroupResource { group: need.group.into_owned(), resource: need.resource.into_owned() }
}
