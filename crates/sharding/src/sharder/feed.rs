//! A list, then a watch from it, again and again: what every watch of the sharder does. What is watched
//! and whom it is told is the [`Subject`]'s.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::stream::BoxStream;
use kubekit::follow::{End, Retry, Source};
use kubekit::health::Check;
use parking_lot::Mutex;

use super::Context;
use crate::kubernetes::{self, Change, Changes, Meaning};

/// Something that is followed.
pub(super) trait Subject: Send {
    /// An object as the watch brings it.
    type Stored: Send + 'static;

    /// What logs and probes call it.
    fn name(&self) -> &str;

    /// Tells of all there is, and returns the moment from which to watch.
    fn list(&mut self) -> impl Future<Output = Result<String, Error>> + Send;

    fn watch(
        &self,
        rv: &str,
    ) -> impl Future<Output = Result<Changes<Self::Stored>, kubernetes::Error>> + Send;

    /// Tells of a change; the moment to which it leads.
    fn on_change(
        &mut self,
        change: Change<Self::Stored>,
    ) -> impl Future<Output = Result<Option<String>, Error>> + Send;
}

/// Why something was not told.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("it cannot be followed")]
    Failed(#[from] kubernetes::Error),
    #[error("nobody takes the news any more")]
    Closed,
}

/// A subject, and where its next watch begins.
pub(super) struct Feed<S: Subject> {
    context: Arc<Context>,
    subject: S,
    /// Without it, a list comes first.
    position: Option<String>,
}

/// Which watches are not up to date. Clones speak of the same.
#[derive(Clone)]
pub(crate) struct Watches {
    behind: Arc<Mutex<BTreeSet<String>>>,
    check: Check,
}

// === impl Feed ===

impl<S: Subject> Feed<S> {
    pub(super) fn new(context: Arc<Context>, subject: S) -> Self {
        context.watches.on_behind(subject.name());
        Self { context, subject, position: None }
    }
}

impl<S: Subject> Source for Feed<S> {
    type Item = Result<Change<S::Stored>, kubernetes::Error>;
    type Error = Error;

    fn name(&self) -> &str {
        self.subject.name()
    }

    async fn begin(&mut self) -> Result<BoxStream<'static, Self::Item>, Error> {
        let position = match self.position.clone() {
            Some(position) => position,
            None => self.subject.list().await?,
        };
        let changes = self.subject.watch(&position).await?;
        self.position = Some(position);
        self.context.watches.on_synced(self.subject.name());
        Ok(changes)
    }

    async fn on_item(&mut self, change: Self::Item) -> Result<(), Error> {
        let position = self.subject.on_change(change?).await?;
        self.position = position.or_else(|| self.position.take());
        Ok(())
    }

    fn on_end(&mut self, end: End) {
        // Silence may mean that we watch from a moment that the server has not reached, as after its
        // storage was restored from a backup.
        if end == End::Silent {
            self.position = None;
        }
    }

    fn on_failure(&mut self, error: &Error) -> Retry {
        self.context.watches.on_behind(self.subject.name());
        let Error::Failed(error) = error else { return Retry::Later };
        match self.position.take_if(|_| error.meaning() == Meaning::Expired) {
            Some(_) => Retry::Soon,
            None => Retry::Later,
        }
    }
}

impl<S: Subject> Drop for Feed<S> {
    /// One that has ended on purpose is not behind.
    fn drop(&mut self) {
        self.context.watches.on_synced(self.subject.name());
    }
}

// === impl Watches ===

impl Watches {
    pub(super) fn new(check: Check) -> Self {
        Self { behind: Arc::default(), check }
    }

    pub(super) fn on_synced(&self, name: &str) {
        let mut behind = self.behind.lock();
        behind.remove(name);
        self.tell(&behind);
    }

    pub(super) fn on_behind(&self, name: &str) {
        let mut behind = self.behind.lock();
        behind.insert(name.to_owned());
        self.tell(&behind);
    }

    fn tell(&self, behind: &BTreeSet<String>) {
        if behind.is_empty() {
            return self.check.pass();
        }
        let names: Vec<&str> = behind.iter().map(String::as_str).collect();
        self.check.fail(format!("not up to date: {}", names.join(", ")));
    }
}
