//! A restore by hand: now, whatever was restored before, and from an older snapshot if one is
//! named. Under the node's lock, and under the guards of the services.

use std::time::Duration;

use kubekit::lock::{Attempt, Lock};
use tokio::time::Instant;

use super::{Admin, Error, Mode, diff::Diff, snapshot};
use crate::{
    core::{change, object::LiveNode, record::Record, rv::ResourceVersion},
    kubernetes::Kind,
};

/// How often node and record are read again because others changed them.
const ATTEMPTS_MAX: usize = 5;

/// Longer than a lock lasts whose holder died, so that its takeover is lived to see.
const LOCK_PATIENCE: Duration = Duration::from_secs(15);

/// How often a lock that somebody holds is asked for.
const LOCK_PAUSE: Duration = Duration::from_millis(500);

// === impl Admin ===

impl Admin {
    /// What was, or would be, changed.
    pub async fn restore(
        &self,
        node: &str,
        from: Option<&ResourceVersion>,
        mode: Mode,
    ) -> Result<Diff, Error> {
        if mode == Mode::DryRun {
            return self.diff(node, from).await;
        }
        let failed = |source| Error::Lock { node: node.to_owned(), source };
        let mut lock = self.lock(node).await?;
        let restored = self.restore_locked(node, from, &mut lock).await;
        // A restore that failed says more than a lock that did.
        let released = lock.release().await.map_err(failed);
        let diff = restored?;
        released.map(|()| diff)
    }

    async fn lock(&self, node: &str) -> Result<Lock, Error> {
        let deadline = Instant::now() + LOCK_PATIENCE;
        loop {
            let attempt = self.locks.acquire(node).await;
            match attempt.map_err(|source| Error::Lock { node: node.to_owned(), source })? {
                Attempt::Held(lock) => return Ok(lock),
                Attempt::Refused(refusal) if Instant::now() >= deadline => {
                    let holder = refusal.holder.unwrap_or_else(|| "others".to_owned());
                    return Err(Error::Locked { node: node.to_owned(), holder });
                }
                Attempt::Refused(_) => tokio::time::sleep(LOCK_PAUSE).await,
            }
        }
    }

    async fn restore_locked(
        &self,
        node: &str,
        from: Option<&ResourceVersion>,
        lock: &mut Lock,
    ) -> Result<Diff, Error> {
        for _ in 0..ATTEMPTS_MAX {
            let kept = lock.keep().await;
            kept.map_err(|source| Error::Lock { node: node.to_owned(), source })?;
            let (record, live) = (self.record(node).await?, self.live(node).await?);
            let diff = Diff::of(&live, snapshot(&record, from)?, &self.policy);
            match self.give(&record, &live, from).await {
                Ok(()) => return Ok(diff),
                Err(Error::Kubernetes(error))
                    if matches!(error.kind, Kind::Conflict | Kind::OtherIncarnation) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::Contended { node: node.to_owned(), attempts: ATTEMPTS_MAX })
    }

    /// The node is marked with the record's version even if it was given an older snapshot: else
    /// the services would amend it to the newer one.
    async fn give(
        &self,
        record: &Record,
        live: &LiveNode,
        from: Option<&ResourceVersion>,
    ) -> Result<(), Error> {
        let labels = &snapshot(record, from)?.labels;
        let change = change::restore(labels, &live.labels, &self.policy);
        let patch = change::patch(live, change, record.rv(), self.policy.marker);
        self.objects.nodes.patch(&live.name, &patch.body()).await?;
        let marked = record.given_to(live, self.now()).encode_ledger();
        self.objects.records.replace(&marked).await?;
        Ok(())
    }
}
