//! The page that shows people what this process is doing: its store, its tasks, its services.
//!
//! | module | owns |
//! |---|---|
//! | `snapshot` | what is known of everything at one moment |
//! | `gather` | asking the parts for it |
//! | `html` | how it looks |
//!
//! Nothing is asked while nobody looks. Whoever looks first waits for the answers.

mod gather;
mod html;
mod snapshot;

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use store::http::{FrontPage, FrontPages, Making};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

pub(crate) use gather::{Health, Parts};

use snapshot::Snapshot;

/// How often the parts are asked, at most, while somebody looks.
const GATHER_PAUSE: Duration = Duration::from_secs(1);

/// What is older was gathered for somebody who has left.
const FRESH: SignedDuration = SignedDuration::from_secs(5);

const HTML: &str = "text/html; charset=utf-8";
const JSON: &str = "application/json";

/// Nothing until somebody has looked.
type Shown = Option<Arc<Snapshot>>;

/// Gathers what the page shows.
pub(crate) struct StatusPage {
    parts: Parts,
    looked: Arc<Notify>,
    gathered: watch::Sender<Shown>,
    clock: fn() -> Timestamp,
}

// === impl StatusPage ===

impl StatusPage {
    pub(crate) fn new(parts: Parts, clock: fn() -> Timestamp) -> Self {
        Self { parts, looked: Arc::default(), gathered: watch::Sender::new(None), clock }
    }

    /// What answers browsers and programs.
    pub(crate) fn pages(&self) -> FrontPages {
        let (looked, gathered, clock) =
            (self.looked.clone(), self.gathered.subscribe(), self.clock);
        Arc::new(move |path| -> Option<Making> {
            let write = match path {
                "/" => html_page,
                "/status.json" => json_page,
                _ => return None,
            };
            looked.notify_one();
            let mut gathered = gathered.clone();
            Some(Box::pin(async move {
                let is_fresh =
                    |shown: &Shown| shown.as_ref().is_some_and(|it| it.is_fresh(clock()));
                let shown = gathered.wait_for(is_fresh).await.ok()?.clone()?;
                Some(write(&shown, clock()))
            }))
        })
    }

    /// Asks the parts whenever somebody has looked, until `shutdown`.
    pub(crate) async fn run(self, shutdown: CancellationToken) {
        let gathering = async {
            loop {
                self.looked.notified().await;
                let snapshot = gather::all(&self.parts, (self.clock)()).await;
                self.gathered.send_replace(Some(Arc::new(snapshot)));
                tokio::time::sleep(GATHER_PAUSE).await;
            }
        };
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = gathering => {}
        }
    }
}

fn html_page(snapshot: &Snapshot, now: Timestamp) -> FrontPage {
    FrontPage { content_type: HTML, text: html::write(snapshot, now) }
}

fn json_page(snapshot: &Snapshot, _now: Timestamp) -> FrontPage {
    let text = serde_json::to_string(snapshot).expect("names and numbers can be written as JSON");
    FrontPage { content_type: JSON, text }
}

// === impl Snapshot ===

impl Snapshot {
    fn is_fresh(&self, now: Timestamp) -> bool {
        now.duration_since(self.at) < FRESH
    }
}
