//! Deleting what no reader can ask for, in bounded steps.

use ignite_client::{Mode, Row};
use journal::{AppendError, Epoch};
use mvcc::Position;

use crate::{
    grid::{Attempts, Grid, GridError},
    rows::history_key,
};

/// Rows deleted in one transaction: an append waits for no more than one of these.
const CHUNK_ROWS: usize = 512;
const STEP: &str = "delete from HISTORY";

// === impl Grid ===

impl Grid {
    pub(crate) async fn forget(
        &self,
        epoch: Epoch,
        positions: &[Position],
    ) -> Result<(), AppendError> {
        let keys: Vec<Row> = positions.iter().map(|at| history_key(&self.layout, *at)).collect();
        // Even if there is nothing to delete, whoever lost the role is told so.
        self.check_held(epoch).await?;
        for chunk in keys.chunks(CHUNK_ROWS) {
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

    async fn forget_chunk(&self, epoch: Epoch, keys: &[Row]) -> Result<(), AppendError> {
        let mut writer = self.writer.lock().await;
        let mut attempts = Attempts::default();
        loop {
            self.held(&mut writer, epoch).await?;
            match self.try_forget(epoch, keys).await {
                Ok(true) => return Ok(()),
                Ok(false) => writer.head = None,
                // Deleting twice harms nobody.
                Err(GridError::Client(ignite_client::Error::Unknown(source))) => {
                    let went_on = attempts.go_on(GridError::Client(*source), STEP).await;
                    went_on.map_err(|source| writer.fail(source))?;
                }
                Err(error) => {
                    let went_on = attempts.go_on(error, STEP).await;
                    went_on.map_err(|source| writer.fail(source))?;
                }
            }
        }
    }

    /// Whether the epoch still held the role, and the rows are gone.
    async fn try_forget(&self, epoch: Epoch, keys: &[Row]) -> Result<bool, GridError> {
        let tx = self.client.begin(Mode::ReadWrite).await?;
        if self.read_head(Some(&tx)).await?.epoch != epoch {
            tx.rollback().await?;
            return Ok(false);
        }
        self.history.delete_all(Some(&tx), keys).await?;
        tx.commit().await?;
        Ok(true)
    }
}
