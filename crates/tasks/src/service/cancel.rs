//! Cancel. Repeating it is success; losing five races is not.

use super::error::Error;
use super::{Service, deadline, task_id, view};
use crate::store::Canceled;
use crate::wire;

// === impl Service ===

impl Service {
    pub(super) async fn cancel_one(
        &self,
        id: &str,
        by: &str,
    ) -> Result<wire::CancelResponse, Error> {
        let id = task_id("id", id)?;
        let canceled = self.node().store().cancel(id, by, deadline()).await;
        let Canceled { record, is_repeated } = canceled.map_err(Error::Cancel)?;
        if !is_repeated {
            self.node().metrics().on_canceled();
        }
        Ok(wire::CancelResponse { task: Some(view::task(&record)) })
    }
}
