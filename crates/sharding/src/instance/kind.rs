//! A kind of objects that is worked on here, and the requests about its objects. Every one has a time
//! limit; what an answer means is the core's to judge.

use std::error;
use std::sync::OnceLock;
use std::time::Duration;

use kube::Client;

use crate::core::instance::{Event, Outcome};
use crate::core::names::{InstanceId, Names};
use crate::core::object::{GroupKind, LabelChange, Object, ObjectName, Version};
use crate::core::spec::GroupResource;
use crate::kubernetes::{Error, Meaning, Objects, Served, Verb, discover};

/// How long an acknowledgement may take before its object is looked at anew.
const ACKNOWLEDGE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long all that is to be given up may take to be listed. It is asked for when a watch may hang,
/// and then other connections may hang too: each question that is given up costs one of them.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);

/// A kind, as those who work on it know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Subject {
    pub(super) kind: GroupKind,
    pub(super) resource: GroupResource,
}

/// Which objects are meant, in the words of label selectors.
#[derive(Clone, Debug)]
pub(super) struct Selectors {
    pub(super) own: String,
    pub(super) draining: String,
}

pub(super) struct Kind {
    client: Client,
    names: Names,
    pub(super) subject: Subject,
    /// Absent until the server has said how to ask for them.
    objects: OnceLock<Objects>,
}

// === impl Selectors ===

impl Selectors {
    pub(super) fn new(names: &Names, id: &InstanceId) -> Self {
        let own = format!("{}={id}", names.shard_label());
        Self { draining: format!("{own},{}", names.drain_label()), own }
    }
}

// === impl Kind ===

impl Kind {
    pub(super) fn new(client: Client, names: Names, subject: Subject) -> Self {
        Self { client, names, subject, objects: OnceLock::new() }
    }

    /// A kind that the server is known to serve.
    pub(super) fn served(client: Client, names: Names, served: Served) -> Self {
        let subject = Subject { kind: served.kind.clone(), resource: served.resource.clone() };
        let objects = Objects::new(client.clone(), names.clone(), served);
        Self { client, names, subject, objects: OnceLock::from(objects) }
    }

    /// Nothing where the server has no such kind.
    pub(super) async fn objects(&self) -> Result<Option<&Objects>, Error> {
        if self.objects.get().is_none() {
            let Some(served) = discover(&self.client, &self.subject.resource).await? else {
                return Ok(None);
            };
            let objects = Objects::new(self.client.clone(), self.names.clone(), served);
            return Ok(Some(self.objects.get_or_init(|| objects)));
        }
        Ok(self.objects.get())
    }

    /// Whether the selector selects any object.
    pub(super) async fn has_any(&self, selector: &str) -> Result<bool, Error> {
        let Some(objects) = self.objects().await? else { return Ok(false) };
        let page = objects.page(selector, None).await?;
        Ok(!page.objects.is_empty())
    }

    /// All that the selector selects, as they are now.
    pub(super) async fn list(&self, selector: &str) -> Result<Vec<Object>, Error> {
        let about = || self.subject.resource.to_string();
        let timed_out = |_elapsed| Error::TimedOut { verb: Verb::List, about: about() };
        let listed = tokio::time::timeout(LIST_TIMEOUT, self.list_pages(selector)).await;
        listed.map_err(timed_out)?
    }

    async fn list_pages(&self, selector: &str) -> Result<Vec<Object>, Error> {
        let Some(objects) = self.objects().await? else { return Ok(Vec::new()) };
        let (mut all, mut token) = (Vec::new(), None);
        loop {
            let page = objects.page(selector, token.as_deref()).await?;
            all.extend(page.objects);
            token = page.token;
            if token.is_none() {
                return Ok(all);
            }
        }
    }

    pub(super) async fn read(&self, name: &ObjectName) -> Result<Event, Error> {
        let found = match self.objects().await? {
            Some(objects) => objects.get(name).await?,
            None => None,
        };
        Ok(match found {
            Some(object) => Event::Seen(Box::new(object)),
            None => Event::Left(name.clone()),
        })
    }

    /// Removes both labels, if the object is still as it was seen.
    pub(super) async fn acknowledge(&self, name: &ObjectName, version: &Version) -> Outcome<()> {
        match self.try_acknowledge(name, version).await {
            Ok(()) => Outcome::Done(()),
            Err(error) if matches!(error.meaning(), Meaning::Conflict | Meaning::Gone) => {
                Outcome::Conflict
            }
            Err(error) => {
                let error: &dyn error::Error = &error;
                tracing::warn!(error, object = %name, "an object cannot be given up, trying again");
                Outcome::Failed
            }
        }
    }

    async fn try_acknowledge(&self, name: &ObjectName, version: &Version) -> Result<(), Error> {
        let Some(objects) = self.objects().await? else { return Ok(()) };
        let change = (version, &LabelChange::Clear);
        objects.label(name, change, ACKNOWLEDGE_TIMEOUT).await.map(|_| ())
    }
}
