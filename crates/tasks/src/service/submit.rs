//! Submit and SubmitBatch.

use super::error::{Error, Field};
use super::refusal::Refusal;
use super::{Service, deadline};
use crate::core::id::TaskId;
use crate::core::keys::Key;
use crate::core::txn::{Op, Txn};
use crate::store::{self, Submitted};
use crate::wire;
use crate::wire::submit_batch_response::{Result as Item, result};

const BATCH_SPECS_MAX: usize = 1000;
/// Tasks read in one request: the store takes 128 operations.
const LOOKED_UP_AT_ONCE: usize = 100;

// === impl Service ===

impl Service {
    pub(super) async fn submit_one(
        &self,
        request: wire::SubmitRequest,
        by: &str,
    ) -> Result<wire::SubmitResponse, Error> {
        let spec = request.spec.ok_or(Error::field("spec", Field::Missing))?;
        let is_full = self.room().await? == 0;
        if is_full && self.were_submitted(std::slice::from_ref(&spec)).await? == [false] {
            return Err(Error::QueueFull { max: self.bounds().queued_max });
        }
        let submitted = self.node().store().submit(spec, by, deadline()).await;
        let submitted = submitted.map_err(Error::Submit)?;
        self.count([&submitted]);
        Ok(response(submitted))
    }

    /// Whom the queue has no room for is refused; the others are not concerned, and neither is who was
    /// stored before.
    pub(super) async fn submit_many(
        &self,
        request: wire::SubmitBatchRequest,
        by: &str,
    ) -> Result<wire::SubmitBatchResponse, Error> {
        let specs = request.specs;
        Error::too_many("specs", specs.len(), BATCH_SPECS_MAX)?;
        let room = self.room().await?.min(specs.len());
        let known = self.were_submitted(&specs[room..]).await?;
        let is_taken: Vec<bool> = std::iter::repeat_n(true, room).chain(known).collect();
        let taken = specs.into_iter().zip(&is_taken).filter(|(_, is_taken)| **is_taken);
        let taken = taken.map(|(spec, _)| spec).collect();
        let submitted = self.node().store().submit_all(taken, by, deadline()).await;
        self.count(submitted.iter().flatten());
        let mut submitted = submitted.into_iter().map(|each| each.map_err(Error::Submit));
        let max = self.bounds().queued_max;
        let results = is_taken.into_iter().map(|is_taken| match is_taken {
            true => submitted.next().expect("each that was taken has a result"),
            false => Err(Error::QueueFull { max }),
        });
        Ok(wire::SubmitBatchResponse { results: results.map(item).collect() })
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

    /// Which of them are in the store already: a repeated submit adds nothing to a full queue.
    async fn were_submitted(&self, specs: &[wire::TaskSpec]) -> Result<Vec<bool>, Error> {
        let mut known = Vec::with_capacity(specs.len());
        for some in specs.chunks(LOOKED_UP_AT_ONCE) {
            let gets: Vec<Op> = some.iter().filter_map(keyed).map(Op::Get).collect();
            if gets.is_empty() {
                known.extend(some.iter().map(|_| false));
                continue;
            }
            let answer = self.node().store().txn(&Txn::read(gets)).await.map_err(Error::Store)?;
            let mut index = 0..;
            for spec in some {
                let at = keyed(spec).and_then(|_| index.next());
                let found = at.map(|at| answer.found(at)).transpose();
                let found = found.map_err(store::Error::Answer).map_err(Error::Store)?;
                known.push(found.flatten().is_some());
            }
        }
        Ok(known)
    }
}

/// Where a spec with an idempotency key would be.
fn keyed(spec: &wire::TaskSpec) -> Option<Key> {
    let key = &spec.idempotency_key;
    (!key.is_empty()).then(|| Key::Task(TaskId::of_key(key)))
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
