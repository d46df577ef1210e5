//! The Leases of all members: listed once, then watched. A watch that ends or falls silent is begun
//! anew with a list, so nothing has to be made up for.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{ListParams, WatchEvent, WatchParams};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Members;
use crate::backoff::Backoff;
use crate::lease;
use crate::lease::call::Leases;
use crate::lease::core::Roster;
use crate::lease::object;

/// How long a list may take.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// Waits between watches that fail.
const RETRY_FIRST: Duration = Duration::from_millis(500);
const RETRY_MAX: Duration = Duration::from_secs(30);

/// A Lease left behind by a member that was killed is removed when it has been silent for so long.
/// That no longer matters to anybody, but such Leases would add up for ever.
const LEFT_BEHIND_AFTER: Duration = Duration::from_secs(60 * 60);

/// Which Leases make the group.
pub(super) struct Group {
    pub(super) prefix: String,
    pub(super) id: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) duration: Duration,
}

pub(super) struct Observer {
    api: Api<Lease>,
    leases: Leases,
    group: Group,
    roster: Roster,
    members: watch::Sender<Members>,
}

/// Why a watch has to be begun anew.
#[derive(Debug, thiserror::Error)]
enum Interruption {
    #[error("listing the members' Leases took longer than {LIST_TIMEOUT:?}")]
    ListTimeout,
    #[error("cannot list the members' Leases")]
    List(#[source] kube::Error),
    #[error("cannot watch the members' Leases")]
    Watch(#[source] kube::Error),
    #[error("the watch of the members' Leases broke")]
    Broken(#[source] kube::Error),
    #[error("the watch of the members' Leases was refused")]
    Refused(#[source] Box<kube::core::Status>),
    /// Our own renewals should have been among the events.
    #[error("the watch of the members' Leases fell silent")]
    Silent,
    #[error("the watch of the members' Leases has ended")]
    Ended,
}

// === impl Observer ===

impl Observer {
    pub(super) fn new(
        api: Api<Lease>,
        leases: Leases,
        group: Group,
        members: watch::Sender<Members>,
    ) -> Self {
        let roster = Roster::new(group.duration);
        Self { api, leases, group, roster, members }
    }

    pub(super) async fn run(mut self, shutdown: &CancellationToken) {
        let mut backoff = Backoff::new(RETRY_FIRST, RETRY_MAX);
        loop {
            let began = Instant::now();
            let interruption = tokio::select! {
                () = shutdown.cancelled() => return,
                interruption = self.observe() => interruption,
            };
            interruption.log();
            // A watch that lasted was a success, however it ended.
            if began.elapsed() > RETRY_MAX {
                backoff.on_success();
            }
            let pause = backoff.on_failure(rand::random());
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = self.keep_time(pause) => {}
            }
        }
    }

    /// Members go on to lapse while nothing can be seen.
    async fn keep_time(&self, pause: Duration) {
        let end = Instant::now() + pause;
        while Instant::now() < end {
            self.publish();
            tokio::time::sleep_until(self.next_lapse().min(end)).await;
        }
    }

    async fn observe(&mut self) -> Interruption {
        match self.follow().await {
            Ok(never) => match never {},
            Err(interruption) => interruption,
        }
    }

    async fn follow(&mut self) -> Result<std::convert::Infallible, Interruption> {
        let resource_version = self.list().await?;
        self.clean_up().await;
        let params =
            WatchParams { label_selector: Some(self.selector()), ..WatchParams::default() };
        let watch = self.api.watch(&params, &resource_version).await;
        let mut events = pin!(watch.map_err(Interruption::Watch)?);
        let silence_max = self.group.duration * 2;
        let mut heard = Instant::now();
        loop {
            self.publish();
            let deadline = self.next_lapse().min(heard + silence_max);
            match tokio::time::timeout_at(deadline, events.next()).await {
                Ok(Some(event)) => {
                    heard = Instant::now();
                    self.on_event(event.map_err(Interruption::Broken)?)?;
                }
                Ok(None) => return Err(Interruption::Ended),
                Err(_) if heard.elapsed() >= silence_max => return Err(Interruption::Silent),
                Err(_lapsed) => {}
            }
        }
    }

    async fn list(&mut self) -> Result<String, Interruption> {
        let params = ListParams::default().labels(&self.selector());
        let listed = tokio::time::timeout(LIST_TIMEOUT, self.api.list(&params))
            .await
            .map_err(|_elapsed| Interruption::ListTimeout)?
            .map_err(Interruption::List)?;
        let members = listed.items.iter().filter_map(|lease| {
            let id = self.group.id_of(lease)?;
            Some((id, object::sighting(lease)))
        });
        let members: Vec<_> = members.collect();
        self.roster.on_listed(members, Instant::now().into_std());
        Ok(listed.metadata.resource_version.unwrap_or_default())
    }

    fn on_event(&mut self, event: WatchEvent<Lease>) -> Result<(), Interruption> {
        let now = Instant::now().into_std();
        match event {
            WatchEvent::Added(lease) | WatchEvent::Modified(lease) => {
                if let Some(id) = self.group.id_of(&lease) {
                    self.roster.on_seen(id, object::sighting(&lease), now);
                }
            }
            WatchEvent::Deleted(lease) => {
                if let Some(id) = self.group.id_of(&lease) {
                    self.roster.on_deleted(&id);
                }
            }
            WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(status) => return Err(Interruption::Refused(status)),
        }
        Ok(())
    }

    fn publish(&self) {
        let mut live = self.roster.live(Instant::now().into_std());
        live.insert(self.group.id.clone());
        self.members.send_if_modified(|members| {
            let is_new = **members != live;
            if is_new {
                *members = Arc::new(live);
            }
            is_new
        });
    }

    /// Far away if nobody is there: no moment to wait for.
    fn next_lapse(&self) -> Instant {
        let now = Instant::now();
        let lapse = self.roster.next_lapse(now.into_std());
        lapse.map_or(now + self.group.duration, Instant::from)
    }

    async fn clean_up(&self) {
        let now = Instant::now().into_std();
        for (id, resource_version) in self.roster.left_behind(LEFT_BEHIND_AFTER, now) {
            let name = format!("{}{id}", self.group.prefix);
            match self.remove(&name, &resource_version).await {
                Ok(()) => tracing::debug!(lease = name, "removed what a killed member left behind"),
                Err(error) => {
                    let error: &dyn std::error::Error = &error;
                    tracing::debug!(error, "what a killed member left behind stays for now");
                }
            }
        }
    }

    async fn remove(&self, name: &str, resource_version: &str) -> Result<(), lease::Error> {
        if let Some(found) = self.leases.read(name).await?
            && found.metadata.resource_version.as_deref() == Some(resource_version)
        {
            self.leases.delete(&found).await?;
        }
        Ok(())
    }

    fn selector(&self) -> String {
        let labels = self.group.labels.iter().map(|(key, value)| format!("{key}={value}"));
        labels.collect::<Vec<_>>().join(",")
    }
}

// === impl Interruption ===

impl Interruption {
    fn log(&self) {
        let error: &dyn std::error::Error = self;
        tracing::debug!(error, "watching the members anew");
    }
}

// === impl Group ===

impl Group {
    /// The member whose Lease this is, if it is of the group.
    fn id_of(&self, lease: &Lease) -> Option<String> {
        lease.metadata.name.as_deref()?.strip_prefix(&self.prefix).map(ToOwned::to_owned)
    }
}
