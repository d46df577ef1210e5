//! One leader among many, kept in one Lease for as long as the leader lives. Written so that it
//! competes with Kubernetes' own components for the same Lease, and either waits for the other.
//!
//! The leader stops acting before anybody else may begin: [`Handle::is_leading`] turns false by the
//! clock, whatever the network does. Its clock is monotonic and may stand still while a machine is
//! suspended, so what a leader writes must be guarded besides.

mod service;

use std::collections::BTreeMap;

use kube::Client;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::lease::WallClock;
use crate::lease::core::{InvalidTimings, Timings};

pub use self::service::Service;

#[derive(Clone, Debug)]
pub struct Options {
    pub namespace: String,
    /// The Lease the candidates compete for.
    pub lease: String,
    /// Who stands for election; no two processes have the same name.
    pub holder: String,
    /// Labels of the Lease, if it has to be created.
    pub labels: BTreeMap<String, String>,
    pub timings: Timings,
    pub clock: WallClock,
}

/// Where we stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Somebody else leads, or nobody yet.
    Standby { leader: Option<String> },
    /// We lead, until then at least.
    Leading { term: Term, until: Instant },
}

/// Which of our leaderships it is: how often this process has been elected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Term(pub u64);

/// Learns where we stand.
#[derive(Clone, Debug)]
pub struct Handle {
    standing: watch::Receiver<Standing>,
}

/// The election and the way to follow it. The client must not repeat requests:
/// [`Repeats::Never`](crate::client::Repeats::Never).
pub fn new(client: Client, options: Options) -> Result<(Service, Handle), InvalidTimings> {
    options.timings.validate()?;
    let (sender, standing) = watch::channel(Standing::Standby { leader: None });
    Ok((Service::new(client, options, sender), Handle { standing }))
}

// === impl Handle ===

impl Handle {
    /// Where we stand now, by the clock.
    #[must_use]
    pub fn standing(&self) -> Standing {
        let standing = self.standing.borrow().clone();
        match standing {
            Standing::Leading { until, .. } if Instant::now() >= until => {
                Standing::Standby { leader: None }
            }
            standing => standing,
        }
    }

    /// Whether a write may be started now.
    #[must_use]
    pub fn is_leading(&self) -> bool {
        matches!(self.standing(), Standing::Leading { .. })
    }

    /// Waits until there is something new: another standing, or one more renewal. Nothing, if the
    /// election was ended.
    pub async fn changed(&mut self) -> Option<Standing> {
        self.standing.changed().await.ok()?;
        self.standing.borrow_and_update();
        Some(self.standing())
    }

    /// Waits until we lead. Nothing, if the election was ended instead.
    pub async fn elected(&mut self) -> Option<Term> {
        loop {
            if let Standing::Leading { term, .. } = self.standing() {
                return Some(term);
            }
            self.standing.changed().await.ok()?;
        }
    }

    /// Waits until we do not lead `term` any more.
    pub async fn lost(&mut self, term: Term) {
        loop {
            let until = match self.standing() {
                Standing::Leading { term: current, until } if current == term => until,
                _ => return,
            };
            tokio::select! {
                changed = self.standing.changed() => if changed.is_err() { return },
                () = tokio::time::sleep_until(until) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;
