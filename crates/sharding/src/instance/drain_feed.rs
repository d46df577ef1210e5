//! Follows our objects of one kind that are to be given up: normally none. The user's own watch will
//! not do: its events may be filtered, and wait behind the very reconcile that they are to end.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::BoxStream;
use kubekit::follow::{End, Retry, Source};

use super::desk::Desk;
use super::kind::{Kind, Selectors};
use crate::core::instance::Event;
use crate::kubernetes::{self, Change, Meaning, Metadata, Objects, Unreadable};

pub(super) struct DrainFeed {
    desk: Arc<Desk>,
    kind: Arc<Kind>,
    selectors: Selectors,
    name: String,
    /// Up to where everything was told; without it, a list comes first.
    position: Option<String>,
}

/// Why something was not told.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("draining objects cannot be followed")]
    Unfollowed(#[from] kubernetes::Error),
    #[error("the server has no such kind")]
    NotServed,
    #[error("a watch shows what cannot be understood")]
    Unreadable(#[from] Unreadable),
}

// === impl DrainFeed ===

impl DrainFeed {
    pub(super) fn new(desk: Arc<Desk>, kind: Arc<Kind>, selectors: Selectors) -> Self {
        let name = format!("drains of {}", kind.subject.kind);
        Self { desk, kind, selectors, name, position: None }
    }

    /// By pages, of which each is told as it comes. What has left since is found out when it is given
    /// up: the write is refused, and then it is read.
    async fn list(&self, objects: &Objects) -> Result<String, Error> {
        let mut token = None;
        loop {
            let page = objects.page(&self.selectors.draining, token.as_deref()).await?;
            for object in page.objects {
                self.desk.tell(Event::Seen(Box::new(object)));
            }
            token = page.token;
            if token.is_none() {
                return Ok(page.rv);
            }
        }
    }
}

impl Source for DrainFeed {
    type Item = Result<Change<Metadata>, kubernetes::Error>;
    type Error = Error;

    fn name(&self) -> &str {
        &self.name
    }

    async fn begin(&mut self) -> Result<BoxStream<'static, Self::Item>, Error> {
        let objects = self.kind.objects().await?.ok_or(Error::NotServed)?;
        let position = match self.position.clone() {
            Some(position) => position,
            None => self.list(objects).await?,
        };
        let changes = objects.watch(&self.selectors.draining, &position).await?;
        self.position = Some(position);
        Ok(changes.boxed())
    }

    async fn on_item(&mut self, change: Self::Item) -> Result<(), Error> {
        let objects = self.kind.objects().await?.ok_or(Error::NotServed)?;
        self.position = match change? {
            Change::Set(metadata) => {
                let object = objects.of_metadata(&metadata)?;
                let position = object.version.0.clone();
                self.desk.tell(Event::Seen(Box::new(object)));
                Some(position)
            }
            // It shows the object as it was before: who has it now, only a read can tell.
            Change::Left(metadata) => {
                let object = objects.of_metadata(&metadata)?;
                self.desk.on_unselected(&object.name);
                Some(object.version.0)
            }
            Change::Bookmark { rv } => Some(rv),
        };
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
        let is_expired =
            matches!(error, Error::Unfollowed(error) if error.meaning() == Meaning::Expired);
        match self.position.take_if(|_| is_expired) {
            Some(_) => Retry::Soon,
            None => Retry::Later,
        }
    }
}
