//! The page that shows people what this process is doing: its store, its tasks, its services.
//!
//! | module | owns |
//! |---|---|
//! | `snapshot` | what is known of everything at one moment |
//! | `gather` | asking the parts for it |
//! | `html` | how it looks |
//!
//! Nothing is asked while nobody looks. Whoever looks first is shown that something is on its way.

mod gather;
mod html;
mod snapshot;

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use store::http::{FrontPage, FrontPages};
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

/// Gathers what the page shows.
pub(crate) struct StatusPage {
    parts: Parts,
    looked: Arc<Notify>,
    gathered: watch::Sender<Option<Arc<Snapshot>>>,
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
        Arc::new(move |path| {
            let write = match path {
                "/" => html_page,
                "/status.json" => json_page,
                _ => return None,
            };
            looked.notify_one();
            let now = clock();
            let fresh = gathered.borrow().clone().filter(|shown| is_fresh(shown, now));
            Some(write(fresh.as_deref(), now))
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

fn is_fresh(snapshot: &Snapshot, now: Timestamp) -> bool {
    now.duration_since(snapshot.at) < FRESH
}

fn html_page(snapshot: Option<&Snapshot>, now: Timestamp) -> FrontPage {
    let text = snapshot.map_or_else(html::on_its_way, |snapshot| html::write(snapshot, now));
    FrontPage { content_type: HTML, text }
}

/// `null` until something was gathered.
fn json_page(snapshot: Option<&Snapshot>, _now: Timestamp) -> FrontPage {
    let text = serde_json::to_string(&snapshot).expect("names and numbers can be written as JSON");
    FrontPage { content_type: JSON, text }
}
