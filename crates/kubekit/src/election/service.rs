//! Standing for election, leading, and resigning.

use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Options, Standing, Term};
use crate::lease::call::Leases;
use crate::lease::core::{Tenure, Timings, Verdict, Vigil};
use crate::lease::object::{self, Claim};
use crate::lease::{self, WallClock};

/// Stands for election until it is stopped.
pub struct Service {
    leases: Leases,
    lease: String,
    claim: Claim,
    timings: Timings,
    clock: WallClock,
    /// What is known of the present leader.
    vigil: Option<Vigil>,
    standing: watch::Sender<Standing>,
    /// The present term, or the last one.
    term: Term,
    is_failing: bool,
}

/// A Lease that is ours.
struct Held {
    lease: Lease,
    tenure: Tenure,
    /// The last renewal was not answered, and may have been carried out.
    is_doubtful: bool,
}

enum Renewal {
    Done,
    /// Somebody else has written the Lease.
    Lost,
}

// === impl Service ===

impl Service {
    pub(super) fn new(client: Client, options: Options, standing: watch::Sender<Standing>) -> Self {
        let Options { namespace, lease, holder, labels, timings, clock } = options;
        Self {
            leases: Leases::new(client, &namespace, timings.request_timeout),
            lease,
            claim: Claim { holder, duration: timings.duration, labels },
            timings,
            clock,
            vigil: None,
            standing,
            term: Term::default(),
            is_failing: false,
        }
    }

    /// Stands, leads, and stands again until `shutdown`; then resigns, so that nobody has to wait
    /// for our silence. A request under way is always waited for: it may have made us the leader.
    pub async fn run(mut self, shutdown: CancellationToken) {
        while !shutdown.is_cancelled() {
            match self.stand().await {
                Ok(Some(held)) => self.lead(held, &shutdown).await,
                Ok(None) => self.pause(&shutdown).await,
                Err(error) => {
                    self.on_failure(&error);
                    self.pause(&shutdown).await;
                }
            }
        }
    }

    async fn pause(&self, shutdown: &CancellationToken) {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = tokio::time::sleep(self.timings.renew_after) => {}
        }
    }

    /// One attempt to become the leader.
    async fn stand(&mut self) -> Result<Option<Held>, lease::Error> {
        let found = self.leases.read(&self.lease).await?;
        self.is_failing = false;
        let sent = Instant::now();
        let taken = match found {
            None => {
                self.vigil = None;
                let wanted = self.claim.create(&self.lease, (self.clock)());
                self.leases.create(&wanted).await?
            }
            Some(found) if self.may_take(&found, sent) => {
                let wanted = self.claim.take_over(found, (self.clock)());
                self.leases.replace(&wanted).await?
            }
            Some(_) => None,
        };
        let tenure = Tenure::begin(self.timings, sent.into_std());
        Ok(taken.map(|lease| Held { lease, tenure, is_doubtful: false }))
    }

    fn may_take(&mut self, found: &Lease, now: Instant) -> bool {
        let (seen, now) = (object::sighting(found), now.into_std());
        self.publish(Standing::Standby { leader: seen.holder.clone() });
        let duration = self.timings.duration;
        let vigil = self.vigil.get_or_insert_with(|| Vigil::begin(duration, seen.clone(), now));
        vigil.on_seen(seen, now);
        vigil.verdict(now) == Verdict::TakeOver
    }

    /// Leads until the Lease is lost or given back.
    async fn lead(&mut self, mut held: Held, shutdown: &CancellationToken) {
        self.vigil = None;
        self.term.0 += 1;
        tracing::info!(lease = self.lease, term = self.term.0, "leading");
        loop {
            let until = Instant::from(held.tenure.may_write_until());
            self.publish(Standing::Leading { term: self.term, until });
            tokio::select! {
                () = shutdown.cancelled() => return self.resign(held).await,
                () = tokio::time::sleep_until(self.next_renewal(&held)) => {}
            }
            match tokio::time::timeout_at(until, self.renew(&mut held)).await {
                Ok(Ok(Renewal::Done)) => self.is_failing = false,
                Ok(Err(error)) if Instant::now() < until => self.on_failure(&error),
                Ok(Err(_) | Ok(Renewal::Lost)) | Err(_) => break,
            }
        }
        tracing::warn!(lease = self.lease, "lost the lead");
        self.publish(Standing::Standby { leader: None });
    }

    /// After a failure there is half of the usual wait, and no more than is left of our time.
    fn next_renewal(&self, held: &Held) -> Instant {
        if held.is_doubtful {
            let soon = Instant::now() + self.timings.renew_after / 2;
            return soon.min(held.tenure.may_write_until().into());
        }
        held.tenure.renewal_due_at().into()
    }

    async fn renew(&self, held: &mut Held) -> Result<Renewal, lease::Error> {
        if held.is_doubtful {
            match self.leases.read(&self.lease).await? {
                Some(found) if self.is_ours(&found, &held.lease) => held.lease = found,
                _ => return Ok(Renewal::Lost),
            }
        }
        let sent = Instant::now();
        held.is_doubtful = true;
        let wanted = object::renew(held.lease.clone(), (self.clock)());
        let Some(lease) = self.leases.replace(&wanted).await? else { return Ok(Renewal::Lost) };
        *held = Held { lease, tenure: held.tenure, is_doubtful: false };
        held.tenure.on_renewed(sent.into_std());
        Ok(Renewal::Done)
    }

    /// Only this process writes our name, so what bears it is a renewal of ours.
    fn is_ours(&self, found: &Lease, held: &Lease) -> bool {
        object::holder(found) == Some(&self.claim.holder) && found.metadata.uid == held.metadata.uid
    }

    /// The Lease stays, with nobody in it: others take that as leave to begin at once.
    async fn resign(&self, held: Held) {
        self.publish(Standing::Standby { leader: None });
        let wanted = object::give_back(held.lease, (self.clock)());
        match self.leases.replace(&wanted).await {
            Ok(_) => tracing::info!(lease = self.lease, "gave the lead back"),
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(
                    lease = self.lease,
                    error,
                    "others have to wait for the lead to lapse"
                );
            }
        }
    }

    fn publish(&self, standing: Standing) {
        self.standing.send_if_modified(|current| {
            let is_new = *current != standing;
            *current = standing;
            is_new
        });
    }

    /// A row of failures is one to whoever reads the log.
    fn on_failure(&mut self, error: &lease::Error) {
        let error: &dyn std::error::Error = error;
        if self.is_failing {
            tracing::debug!(lease = self.lease, error, "the election still fails");
        } else {
            tracing::warn!(lease = self.lease, error, "the election fails and is tried again");
        }
        self.is_failing = true;
    }
}
