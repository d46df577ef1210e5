//! Carrying out commands: each is one request, sent once within its time, and answered once. Never
//! decides what a failure means for the ring.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kubekit::election;

use super::Context;
use super::pages::{Cursor, Listed, query};
use super::plan::{Watched, Work};
use crate::core::lease::Lease;
use crate::core::names::{InstanceId, Names};
use crate::core::object::{GroupKind, LabelChange, Object, ObjectName, Uid, Version};
use crate::core::partition::table::Kept;
use crate::core::sharder::{Answer, KindSet, Selector};
use crate::kubernetes::{Error, Leases, Meaning, Objects};

/// How long a request about a Lease may take, where no instance's Lease asks for less: D/5.
pub(super) const LEASE_TIMEOUT: Duration = Duration::from_secs(3);

/// What a command came to, and what was wrong if something was.
pub(super) type Outcome = (Answer, Option<Error>);

/// All that requests are made with. Clones are cheap.
#[derive(Clone)]
pub(super) struct Hand {
    context: Arc<Context>,
    names: Names,
    leases: Leases,
    standing: election::Handle,
    kinds: Arc<KindsOf>,
}

/// The kinds of the ring, by what they are asked for.
#[derive(Default)]
struct KindsOf {
    by_kind: BTreeMap<GroupKind, Objects>,
    main: Vec<Listed>,
    controlled: Vec<Listed>,
}

// === impl Hand ===

impl Hand {
    pub(super) fn new(
        context: Arc<Context>,
        (names, leases): (Names, Leases),
        standing: election::Handle,
    ) -> Self {
        Self { context, names, leases, standing, kinds: Arc::default() }
    }

    /// From now on for these kinds.
    pub(super) fn set_work(&mut self, work: &Work) {
        let listed = |watched: &Watched| Listed {
            objects: Objects::new(
                self.context.client.clone(),
                self.names.clone(),
                watched.served.clone(),
            ),
            narrowing: watched.narrowing.clone(),
        };
        let main: Vec<Listed> = work.main.iter().map(listed).collect();
        let controlled: Vec<Listed> = work.controlled.iter().map(listed).collect();
        let all = main.iter().chain(&controlled).map(|it| it.objects.clone());
        let by_kind = all.map(|objects| (objects.served().kind.clone(), objects)).collect();
        self.kinds = Arc::new(KindsOf { by_kind, main, controlled });
    }

    /// The same, with another limit on requests about Leases.
    pub(super) fn within(&self, timeout: Duration) -> Self {
        Self { leases: self.leases.within(timeout), ..self.clone() }
    }

    /// `v1`, as Events call the version of a kind.
    pub(super) fn api_version(&self, kind: &GroupKind) -> Option<String> {
        Some(self.kinds.by_kind.get(kind)?.served().api_version().to_owned())
    }

    pub(super) fn cursor(&self, kinds: KindSet, selector: Selector) -> Cursor {
        let kinds = match kinds {
            KindSet::Main => self.kinds.main.clone(),
            KindSet::Controlled => self.kinds.controlled.clone(),
        };
        Cursor::new(kinds, selector)
    }

    pub(super) async fn write_object(
        self,
        name: ObjectName,
        (version, change): (Version, LabelChange),
        timeout: Duration,
    ) -> Outcome {
        let objects = self.kinds.by_kind.get(&name.kind).filter(|_| self.standing.is_leading());
        let Some(objects) = objects else { return (Answer::Failed, None) };
        let written = objects.label(&name, (&version, &change), timeout).await;
        outcome(written, |object| Answer::Object(Box::new(object)))
    }

    pub(super) async fn read_object(self, name: ObjectName) -> Outcome {
        let Some(objects) = self.kinds.by_kind.get(&name.kind) else {
            return (Answer::Failed, None);
        };
        let found = objects.get(&name).await;
        outcome(found, |found| found.map_or(Answer::Gone, |it| Answer::Object(Box::new(it))))
    }

    /// The request that takes a Lease is sent once: success proves that the server can be reached.
    pub(super) async fn write_lease(self, lease: Box<Lease>, is_new: bool) -> Outcome {
        let Some(_permit) = self.permit().await else { return (Answer::Failed, None) };
        let is_taken = lease.holder.as_deref() == Some(self.names.sharder_holder());
        let written = if is_new {
            self.leases.create(&lease).await
        } else {
            self.leases.write(&lease, is_taken).await
        };
        outcome(written, |lease| Answer::Lease(Box::new(lease)))
    }

    pub(super) async fn read_lease(self, id: InstanceId, namespace: String) -> Outcome {
        let found = self.leases.get_stored(&id, &namespace).await;
        let own = self.names.ring().as_str();
        outcome(found, |found| match found {
            None => Answer::Gone,
            Some((lease, Some(ring))) if ring == own => Answer::Lease(Box::new(lease)),
            // Whoever holds it is no instance of ours.
            Some(_) => Answer::NotOfRing,
        })
    }

    pub(super) async fn delete_lease(self, lease: Box<Lease>) -> Outcome {
        let Some(_permit) = self.permit().await else { return (Answer::Failed, None) };
        outcome(self.leases.delete(&lease).await, |()| Answer::Gone)
    }

    pub(super) async fn show_state(
        self,
        (id, namespace): (&InstanceId, &str),
        word: &'static str,
    ) -> Result<(), Error> {
        match self.leases.show_state((id, namespace), word).await {
            // There is nothing left to show it on.
            Err(error) if error.meaning() == Meaning::Gone => Ok(()),
            shown => shown,
        }
    }

    pub(super) async fn write_table(self, kept: Kept, version: Version) -> Outcome {
        if !self.standing.is_leading() {
            return (Answer::Failed, None);
        }
        let ring = self.names.ring().as_str();
        outcome(self.context.rings.write_table(ring, &kept, &version).await, Answer::Table)
    }

    /// All children of these objects, through as many pages as it takes.
    pub(super) async fn list_children(
        self,
        from: Option<InstanceId>,
        parents: BTreeSet<Uid>,
    ) -> Outcome {
        let selector = from.map_or(Selector::All, Selector::Of);
        let mut children = Vec::new();
        for Listed { objects, narrowing } in &self.kinds.controlled {
            let query = query(&self.names, &selector, narrowing.as_deref());
            let mut token = None;
            loop {
                let page = match objects.page(&query, token.as_deref()).await {
                    Ok(page) => page,
                    Err(error) => return (Answer::Failed, Some(error)),
                };
                children.extend(page.objects.into_iter().filter(|it| is_child(it, &parents)));
                token = page.token;
                if token.is_none() {
                    break;
                }
            }
        }
        (Answer::Children(children), None)
    }

    /// Leave to write about a Lease; none if somebody else leads by now.
    async fn permit(&self) -> Option<tokio::sync::SemaphorePermit<'_>> {
        let permit = self.context.lease_workers.acquire().await.ok()?;
        self.standing.is_leading().then_some(permit)
    }
}

fn is_child(object: &Object, parents: &BTreeSet<Uid>) -> bool {
    object.controller.as_ref().is_some_and(|owner| parents.contains(&owner.uid))
}

fn outcome<T>(result: Result<T, Error>, done: impl FnOnce(T) -> Answer) -> Outcome {
    match result {
        Ok(value) => (done(value), None),
        Err(error) => match error.meaning() {
            Meaning::Conflict => (Answer::Conflict, None),
            Meaning::Gone => (Answer::Gone, None),
            Meaning::Forbidden | Meaning::Invalid => (Answer::Refused, Some(error)),
            _ => (Answer::Failed, Some(error)),
        },
    }
}
