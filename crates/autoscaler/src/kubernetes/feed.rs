//! The watch that fills a cache: a list in pages, then every change, again and again.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use kube::api::{ListParams, WatchParams};
use kube::core::{ObjectMeta, WatchEvent};
use kube::{Api, Resource};
use kubekit::failure::Failure;
use kubekit::follow::{End, Retry, Source};
use serde::de::DeserializeOwned;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::cache::{Cache, Key};

/// Objects of a page: pods are a few kilobytes each.
const PAGE: u32 = 500;

/// How long a page, or the beginning of a watch, may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// History does not reach back that far.
const EXPIRED: u16 = 410;

/// What of an object is kept.
pub(super) type Take<K, T> = Box<dyn FnMut(K) -> T + Send + Sync>;

/// Objects of one kind, followed into a cache.
pub(super) struct Feed<K, T> {
    pub(super) name: &'static str,
    pub(super) api: Api<K>,
    /// Which of them; all, if empty.
    pub(super) fields: &'static str,
    pub(super) take: Take<K, T>,
    pub(super) cache: Cache<T>,
    /// Where a list is not needed, the moment from which to watch.
    pub(super) position: Option<String>,
    pub(super) alarm: Option<Alarm<T>>,
}

/// Whom to wake for which change: what it is now, and what it was.
pub(super) struct Alarm<T> {
    pub(super) is_due: fn(&T, Option<&T>) -> bool,
    pub(super) wakes: Arc<Notify>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("{kind} cannot be followed")]
    Failed {
        kind: &'static str,
        #[source]
        source: Failure,
    },
    #[error("{kind} cannot be listed in time")]
    TimedOut { kind: &'static str },
}

// === impl Feed ===

impl<K, T> Feed<K, T>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    async fn list(&mut self) -> Result<String, Error> {
        let (mut all, mut token) = (Vec::new(), None);
        loop {
            let mut params = ListParams::default().limit(PAGE).fields(self.fields);
            params.continue_token = token;
            let page = self.answered(self.api.list(&params)).await?;
            all.extend(page.items.into_iter().map(|object| self.kept(object)));
            token = page.metadata.continue_.filter(|token| !token.is_empty());
            if token.is_none() {
                self.cache.replace(all.into_iter());
                return Ok(page.metadata.resource_version.unwrap_or_default());
            }
        }
    }

    /// What managers wrote which field is half of an object, and nothing to us.
    fn kept(&mut self, mut object: K) -> (Key, T) {
        object.meta_mut().managed_fields = None;
        let key = key(object.meta());
        (key, (self.take)(object))
    }

    async fn answered<V>(&self, sent: impl Future<Output = kube::Result<V>>) -> Result<V, Error> {
        let kind = self.name;
        match timeout(ANSWER_TIMEOUT, sent).await {
            Ok(answer) => answer.map_err(|error| Error::Failed { kind, source: error.into() }),
            Err(_elapsed) => Err(Error::TimedOut { kind }),
        }
    }

    fn on_set(&mut self, object: K) {
        let (key, object) = self.kept(object);
        if let Some(alarm) = &self.alarm {
            let before = self.cache.get(&key);
            if (alarm.is_due)(&object, before.as_deref()) {
                alarm.wakes.notify_one();
            }
        }
        self.cache.set(key, object);
    }
}

impl<K, T> Source for Feed<K, T>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    T: Send + Sync,
{
    type Item = kube::Result<WatchEvent<K>>;
    type Error = Error;

    fn name(&self) -> &str {
        self.name
    }

    async fn begin(&mut self) -> Result<BoxStream<'static, Self::Item>, Error> {
        let position = match self.position.clone() {
            Some(position) => position,
            None => self.list().await?,
        };
        let params = WatchParams::default().fields(self.fields);
        let changes = self.answered(self.api.watch(&params, &position)).await?.boxed();
        self.position = Some(position);
        self.cache.set_current(true);
        Ok(changes)
    }

    async fn on_item(&mut self, event: Self::Item) -> Result<(), Error> {
        let failed = |error: kube::Error| Error::Failed { kind: self.name, source: error.into() };
        let position = match event.map_err(failed)? {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                let position = object.meta().resource_version.clone();
                self.on_set(object);
                position
            }
            WatchEvent::Deleted(object) => {
                self.cache.remove(&key(object.meta()));
                object.meta().resource_version.clone()
            }
            WatchEvent::Bookmark(mark) => Some(mark.metadata.resource_version),
            WatchEvent::Error(status) => return Err(failed(kube::Error::Api(status))),
        };
        self.position = position.or_else(|| self.position.take());
        Ok(())
    }

    fn on_end(&mut self, end: End) {
        // Silence may mean that we watch from a moment that the server has not reached, as after its
        // storage was restored from a backup.
        // What was seen still counts: kinds that nobody writes to are silent for good, and the list
        // that follows at once shows what there is, or fails.
        if end == End::Silent {
            self.position = None;
        }
    }

    fn on_failure(&mut self, error: &Error) -> Retry {
        self.cache.set_current(false);
        let Error::Failed { source, .. } = error else { return Retry::Later };
        let is_expired = source.refusal().is_some_and(|status| status.code == EXPIRED);
        match self.position.take_if(|_| is_expired) {
            Some(_) => Retry::Soon,
            None => Retry::Later,
        }
    }
}

fn key(metadata: &ObjectMeta) -> Key {
    let namespace = metadata.namespace.clone().unwrap_or_default();
    (namespace, metadata.name.clone().unwrap_or_default())
}
