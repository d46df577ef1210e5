//! What is watched: Rings and namespaces by every process, each ring's Leases by every process, and
//! objects without an owner by the leader.

use k8s_openapi::api::coordination::v1 as api;
use kube::api::DynamicObject;
use kube::core::ObjectMeta;
use tokio::sync::mpsc;

use super::Context;
use super::feed::{Error, Subject};
use super::supervisor::News;
use crate::core::key::{Kinds, Role};
use crate::core::lease::Lease;
use crate::core::object::Object;
use crate::core::sharder::Event;
use crate::kubernetes::{self, Change, Changes, Leases, Metadata, Namespaces, Objects, Rings};

pub(super) struct RingFeed {
    rings: Rings,
    news: mpsc::Sender<News>,
}

pub(super) struct NamespaceFeed {
    namespaces: Namespaces,
    news: mpsc::Sender<News>,
}

/// The Leases of one ring.
pub(super) struct LeaseFeed {
    name: String,
    leases: Leases,
    events: mpsc::Sender<Event>,
}

/// The objects of one kind that have no shard label.
pub(super) struct UnassignedFeed {
    name: String,
    objects: Objects,
    selector: String,
    /// Of the ring: objects that are none of its are dropped as soon as they are seen.
    kinds: Kinds,
    events: mpsc::Sender<Event>,
}

// === impl RingFeed ===

impl RingFeed {
    pub(super) fn new(context: &Context, news: mpsc::Sender<News>) -> Self {
        Self { rings: context.rings.clone(), news }
    }
}

impl Subject for RingFeed {
    type Stored = DynamicObject;

    fn name(&self) -> &'static str {
        "rings"
    }

    async fn list(&mut self) -> Result<String, Error> {
        let (rings, rv) = self.rings.list().await?;
        send(&self.news, News::RingsListed(rings)).await?;
        Ok(rv)
    }

    async fn watch(&self, rv: &str) -> Result<Changes<DynamicObject>, kubernetes::Error> {
        self.rings.watch(rv).await
    }

    async fn on_change(&mut self, change: Change<DynamicObject>) -> Result<Option<String>, Error> {
        let (rv, news) = match change {
            Change::Bookmark { rv } => return Ok(Some(rv)),
            Change::Set(ring) => {
                (ring.metadata.resource_version.clone(), News::RingSet(Box::new(ring)))
            }
            Change::Left(ring) => {
                let name = ring.metadata.name.unwrap_or_default();
                (ring.metadata.resource_version, News::RingLeft(name))
            }
        };
        send(&self.news, news).await?;
        Ok(rv)
    }
}

// === impl NamespaceFeed ===

impl NamespaceFeed {
    pub(super) fn new(context: &Context, news: mpsc::Sender<News>) -> Self {
        Self { namespaces: Namespaces::new(context.client.clone()), news }
    }
}

impl Subject for NamespaceFeed {
    type Stored = ObjectMeta;

    fn name(&self) -> &'static str {
        "namespaces"
    }

    async fn list(&mut self) -> Result<String, Error> {
        let (namespaces, rv) = self.namespaces.list().await?;
        send(&self.news, News::NamespacesListed(namespaces)).await?;
        Ok(rv)
    }

    async fn watch(&self, rv: &str) -> Result<Changes<ObjectMeta>, kubernetes::Error> {
        self.namespaces.watch(rv).await
    }

    async fn on_change(&mut self, change: Change<ObjectMeta>) -> Result<Option<String>, Error> {
        let (rv, news) = match change {
            Change::Bookmark { rv } => return Ok(Some(rv)),
            Change::Set(metadata) => {
                let rv = metadata.resource_version.clone();
                (rv, News::NamespaceSet(Namespaces::read(metadata)))
            }
            Change::Left(metadata) => {
                let rv = metadata.resource_version.clone();
                (rv, News::NamespaceLeft(Namespaces::read(metadata).name))
            }
        };
        send(&self.news, news).await?;
        Ok(rv)
    }
}

// === impl LeaseFeed ===

impl LeaseFeed {
    pub(super) fn new(ring: &str, leases: Leases, events: mpsc::Sender<Event>) -> Self {
        Self { name: format!("leases of {ring}"), leases, events }
    }

    /// Anybody may put a ring's label on a Lease; one that names no instance is none of ours.
    fn read(&self, stored: &api::Lease) -> Option<Lease> {
        match self.leases.read(stored) {
            Ok(lease) => Some(lease),
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                let lease = stored.metadata.name.as_deref();
                tracing::warn!(watch = self.name, lease, error, "ignoring a Lease");
                None
            }
        }
    }
}

impl Subject for LeaseFeed {
    type Stored = api::Lease;

    fn name(&self) -> &str {
        &self.name
    }

    async fn list(&mut self) -> Result<String, Error> {
        let (stored, rv) = self.leases.list().await?;
        let leases = stored.iter().filter_map(|lease| self.read(lease)).collect();
        send(&self.events, Event::LeasesListed(leases)).await?;
        Ok(rv)
    }

    async fn watch(&self, rv: &str) -> Result<Changes<api::Lease>, kubernetes::Error> {
        self.leases.watch(rv).await
    }

    async fn on_change(&mut self, change: Change<api::Lease>) -> Result<Option<String>, Error> {
        let (stored, is_left) = match change {
            Change::Bookmark { rv } => return Ok(Some(rv)),
            Change::Set(lease) => (lease, false),
            Change::Left(lease) => (lease, true),
        };
        if let Some(lease) = self.read(&stored) {
            let event = if is_left {
                Event::LeaseDeleted(Box::new(lease))
            } else {
                Event::LeaseSeen(Box::new(lease))
            };
            send(&self.events, event).await?;
        }
        Ok(stored.metadata.resource_version)
    }
}

// === impl UnassignedFeed ===

impl UnassignedFeed {
    pub(super) fn new(
        ring: &str,
        (objects, selector): (Objects, String),
        kinds: Kinds,
        events: mpsc::Sender<Event>,
    ) -> Self {
        let name = format!("{} of {ring}", objects.served().resource);
        Self { name, objects, selector, kinds, events }
    }

    async fn tell(&self, object: Object, is_listed: bool) -> Result<(), Error> {
        if self.kinds.role(&object) == Role::Foreign {
            return Ok(());
        }
        send(&self.events, Event::Unassigned { object: Box::new(object), is_listed }).await
    }

    fn read(&self, metadata: &Metadata) -> Option<Object> {
        match self.objects.of_metadata(metadata) {
            Ok(object) => Some(object),
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(watch = self.name, error, "ignoring an object");
                None
            }
        }
    }
}

impl Subject for UnassignedFeed {
    type Stored = Metadata;

    fn name(&self) -> &str {
        &self.name
    }

    async fn list(&mut self) -> Result<String, Error> {
        let mut token = None;
        loop {
            let page = self.objects.page(&self.selector, token.as_deref()).await?;
            for object in page.objects {
                self.tell(object, true).await?;
            }
            token = page.token;
            if token.is_none() {
                return Ok(page.rv);
            }
        }
    }

    async fn watch(&self, rv: &str) -> Result<Changes<Metadata>, kubernetes::Error> {
        self.objects.watch(&self.selector, rv).await
    }

    async fn on_change(&mut self, change: Change<Metadata>) -> Result<Option<String>, Error> {
        let (metadata, is_left) = match change {
            Change::Bookmark { rv } => return Ok(Some(rv)),
            Change::Set(metadata) => (metadata, false),
            Change::Left(metadata) => (metadata, true),
        };
        let Some(object) = self.read(&metadata) else { return Ok(metadata.version()) };
        let rv = object.version.0.clone();
        if is_left {
            send(&self.events, Event::NotUnassigned(object.name)).await?;
        } else {
            self.tell(object, false).await?;
        }
        Ok(Some(rv))
    }
}

/// Waits while too much is to be taken in; meanwhile the server keeps what follows.
async fn send<T>(to: &mpsc::Sender<T>, news: T) -> Result<(), Error> {
    to.send(news).await.map_err(|_returned| Error::Closed)
}
