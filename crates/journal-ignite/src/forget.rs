//! Deleting what no reader can ask for, in bounded steps.

use journal::{AppendError, Epoch};
use mvcc::Position;

use crate::{
    grid::{Attempts, Grid},
    rows::{Changes, history_key},
};

/// Rows deleted in one transaction: an append waits for no more than one of these.
const CHUNK_ROWS: usize = 512;

// === impl Grid ===

impl Grid {
    pub(crate) async fn forget(
        &self,
        epoch: Epoch,
        positions: &[Position],
    ) -> Result<(), AppendError> {
        // Even if there is nothing to delete, whoever lost the role is told so.
        self.check_held(epoch).await?;
        for chunk in positions.chunks(CHUNK_ROWS) {
            self.forget_chunk(epoch, chunk).await?;
        }
        Ok(())
    }

    /// Fails unless the epoch holds the role at its primary, whatever this process remembers.
    pub(crate) async fn check_held(&self, epoch: Epoch) -> Result<(), AppendError> {
        let mut writer = self.writer.lock().await;
        writer.head = None;
        self.held(&mut writer, epoch).await.map(drop)
    }

    async fn forget_chunk(&self, epoch: Epoch, chunk: &[Position]) -> Result<(), AppendError> {
        let Some(newest) = chunk.iter().map(|at| at.revision).max() else { return Ok(()) };
        let history_unset = chunk.iter().map(|at| history_key(&self.layout, *at)).collect();
        let changes = Changes { history_unset, ..Changes::default() };
        let mut attempts = Attempts::default();
        loop {
            match self.write(epoch, &changes, |head| Ok(head.forgot(newest))).await {
                // Deleting twice harms nobody, so an unknown end is as good as a failed one.
                Err(AppendError::Unknown { source }) => {
                    let source = attempts.pause(source).await;
                    source.map_err(|source| AppendError::Unknown { source })?;
                }
                outcome => return outcome,
            }
        }
    }
}
