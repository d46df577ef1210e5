//! Checking the store as a whole, and mending status keys.

use tokio::time::Instant;

use super::list::Wanted;
use super::{Error, Listed, Store};
use crate::core::fsck::{Absences, Finding, Snapshot};
use crate::core::id::Revision;
use crate::core::keys::KeyRange;

/// What was found at one revision.
#[derive(Clone, Debug)]
pub struct Checked {
    pub findings: Vec<Finding>,
    pub revision: Revision,
}

#[derive(Debug, thiserror::Error)]
pub enum FsckError {
    #[error("the tasks could not be listed")]
    Tasks(#[source] Error),
    #[error("the nodes could not be listed")]
    Nodes(#[source] Error),
    #[error("{key} could not be mended")]
    Repair {
        key: String,
        #[source]
        source: Error,
    },
}

// === impl Store ===

impl Store {
    /// Looks at everything, at one revision. `absences` tell how long nodes are known to be gone;
    /// without them, no task is said to be lost.
    pub async fn fsck(&self, absences: &Absences) -> Result<Checked, FsckError> {
        let Listed { mut kvs, revision } =
            self.list(KeyRange::TASKS_AND_STATUSES).await.map_err(FsckError::Tasks)?;
        let nodes = Wanted { range: KeyRange::NODES, at: Some(revision), is_keys_only: true };
        kvs.extend(self.list_all(nodes).await.map_err(FsckError::Nodes)?.kvs);
        Ok(Checked { findings: Snapshot::new(&kvs).check(absences), revision })
    }

    /// Makes the status keys say what the record says. Whether it did: not if the task has changed
    /// since, or status keys are not the trouble.
    pub async fn repair(&self, finding: &Finding, until: Instant) -> Result<bool, FsckError> {
        let Some(txn) = finding.repair() else { return Ok(false) };
        let answer = self.insist(&txn, until).await;
        let failed = |source| FsckError::Repair { key: finding.key(), source };
        Ok(answer.map_err(failed)?.succeeded)
    }
}
