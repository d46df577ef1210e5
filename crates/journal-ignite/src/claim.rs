//! Taking the writer's role.

use ignite_client::Mode;
use journal::Epoch;

use crate::{
    Error,
    grid::{Attempts, Grid, GridError},
    head::Head,
};

// === impl Grid ===

impl Grid {
    /// Raises the epoch, so that every write under an earlier one finds the head changed.
    pub(crate) async fn claim(&self) -> Result<Epoch, Error> {
        let mut writer = self.writer.lock().await;
        writer.head = None;
        let mut attempts = Attempts::default();
        loop {
            match self.try_claim().await {
                Ok(head) => {
                    *writer = crate::grid::Writer { head: Some(head), is_stopped: false };
                    return Ok(head.epoch);
                }
                // Claiming twice harms nobody, so an unknown commit is as good as a failed one.
                Err(GridError::Client(ignite_client::Error::Unknown(source))) => {
                    attempts.go_on(GridError::Client(*source), "claim the writer's role").await?;
                }
                Err(error) => attempts.go_on(error, "claim the writer's role").await?,
            }
        }
    }

    async fn try_claim(&self) -> Result<Head, GridError> {
        let tx = self.client.begin(Mode::ReadWrite).await?;
        let head = self.read_head(Some(&tx)).await?.claimed();
        self.head.upsert(Some(&tx), &head.to_row(&self.layout)).await?;
        tx.commit().await?;
        Ok(head)
    }
}
