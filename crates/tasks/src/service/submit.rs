//! Submit and SubmitBatch.

use super::error::{Error, Field};
use super::refusal::Refusal;
use super::{Service, deadline};
use crate::core::id::TaskId;
use crate::store::Submitted;
use crate::wire;
use crate::wire::submit_batch_response::{Result as Item, result};

const BATCH_SPECS_MAX: usize = 1000;

// === impl Service ===

impl Service {
    pub(super) async fn submit_one(
        &self,
        request: wire::SubmitRequest,
        by: &str,
    ) -> Result<wire::SubmitResponse, Error> {
        let spec = request.spec.ok_or(Error::field("spec", Field::Missing))?;
        if self.room().await? == 0 && !self.was_submitted(&spec.idempotency_key).await? {
            return Err(Error::QueueFull { max: self.bounds().queued_max });
        }
        let submitted = self.node().store().submit(spec, by, deadline()).await;
        let submitted = submitted.map_err(Error::Submit)?;
        self.count([&submitted]);
        Ok(response(submitted))
    }

    /// Whom the queue has no room for is refused; the others are not concerned.
    pub(super) async fn submit_many(
        &self,
        request: wire::SubmitBatchRequest,
        by: &str,
    ) -> Result<wire::SubmitBatchResponse, Error> {
        let mut specs = request.specs;
        Error::too_many("specs", specs.len(), BATCH_SPECS_MAX)?;
        let left_out = specs.split_off(self.room().await?.min(specs.len()));
        let submitted = self.node().store().submit_all(specs, by, deadline()).await;
        self.count(submitted.iter().flatten());
        let max = self.bounds().queued_max;
        let results = submitted.into_iter().map(|each| each.map_err(Error::Submit));
        let refused = left_out.iter().map(|_| Err(Error::QueueFull { max }));
        Ok(wire::SubmitBatchResponse { results: results.chain(refused).map(item).collect() })
    }

    fn count<'a>(&self, submitted: impl IntoIterator<Item = &'a Submitted>) {
        let new = submitted.into_iter().filter(|each| !each.is_repeated).count();
        self.node().metrics().on_submitted(new as u64);
    }

    /// How many tasks the queue still takes, as far as this node knows.
    async fn room(&self) -> Result<usize, Error> {
        let queued = self.node().look(|view| view.cache.queue_len()).await;
        let queued = queued.or(Err(Error::Stopping))?;
        Ok(self.bounds().queued_max.saturating_sub(queued))
    }

    /// A repeated submit adds nothing to a full queue.
    async fn was_submitted(&self, key: &str) -> Result<bool, Error> {
        if key.is_empty() {
            return Ok(false);
        }
        let found = self.node().store().get(TaskId::of_key(key)).await;
        Ok(found.map_err(Error::Store)?.is_some())
    }
}

fn response(submitted: Submitted) -> wire::SubmitResponse {
    wire::SubmitResponse { id: submitted.id.to_string(), existed: submitted.is_repeated }
}

fn item(outcome: Result<Submitted, Error>) -> Item {
    let result = match outcome {
        Ok(submitted) => result::Result::Submitted(response(submitted)),
        Err(error) => {
            let Refusal { kind, message } = error.into();
            result::Result::Refused(wire::Refusal { code: kind.number(), message })
        }
    };
    Item { result: Some(result) }
}
