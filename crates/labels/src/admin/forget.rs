//! A record deleted, and the checkpoint of whoever is gone, so that the node starts afresh when it
//! returns.

use serde::Serialize;

use super::{Admin, Error, Mode};
use crate::{
    core::{
        checkpoint::CheckpointMeta,
        names::NodeHash,
        object::Document,
        record::{Stored, Unreadable},
    },
    kubernetes::{Guard, Kind},
};

/// What was, or would be, deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Forgotten {
    pub node: String,
    /// How many labels are gone with it; unknown if the record could not be read.
    pub labels: Option<usize>,
    /// Checkpoints of a node that is gone: one at most.
    pub checkpoints: usize,
    /// Transactions that may make a new record.
    pub queued: usize,
}

// === impl Admin ===

impl Admin {
    /// Refused while transactions are queued, unless forced: they would bring labels back.
    pub async fn forget(&self, node: &str, force: bool, mode: Mode) -> Result<Forgotten, Error> {
        let record = self.objects.records.get(node).await?;
        let (document, labels) = ours(node, record)?;
        let queued = self.queue(node).await?.len();
        if queued > 0 && !force {
            return Err(Error::Queued { node: node.to_owned(), count: queued });
        }
        let checkpoint = self.left_behind(node).await?;
        if mode == Mode::Write {
            // The checkpoint goes first: whoever is refused after that still finds the record to
            // forget, while a watcher that finds a checkpoint alone makes a new record from it.
            if let Some(checkpoint) = &checkpoint {
                self.remove_checkpoint(checkpoint).await?;
            }
            self.objects.records.delete(node, Guard::of(&document)).await?;
        }
        let checkpoints = usize::from(checkpoint.is_some());
        Ok(Forgotten { node: node.to_owned(), labels, checkpoints, queued })
    }

    /// The node's checkpoint, unless it is of the incarnation that lives. One that cannot be read
    /// is of nobody; a node that lives gets a new one.
    async fn left_behind(&self, node: &str) -> Result<Option<Document>, Error> {
        let name = NodeHash::of(node).to_string();
        let Some(checkpoint) = self.objects.checkpoints.get(&name).await? else { return Ok(None) };
        // Read after the checkpoint: who was born in between has another uid, or a newer checkpoint
        // that the guard protects.
        let live = self.objects.nodes.get(node).await?;
        let of = CheckpointMeta::decode(&checkpoint).ok().map(|meta| meta.uid);
        let is_of_the_living = live.is_some_and(|live| Some(live.uid) == of);
        Ok((!is_of_the_living).then_some(checkpoint))
    }

    /// A watcher may have removed it meanwhile.
    async fn remove_checkpoint(&self, checkpoint: &Document) -> Result<(), Error> {
        let removed =
            self.objects.checkpoints.delete(&checkpoint.name, Guard::of(checkpoint)).await;
        match removed {
            Err(error) if error.kind != Kind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }
}

/// A record that cannot be read may be forgotten; what is somebody else's may not.
fn ours(node: &str, document: Option<Document>) -> Result<(Document, Option<usize>), Error> {
    let stored = Stored::read(document.as_ref());
    match (document, stored) {
        (Some(document), Stored::Record(record)) => Ok((document, Some(record.labels().len()))),
        (Some(document), Stored::Unreadable(reason)) if !matches!(reason, Unreadable::Foreign) => {
            Ok((document, None))
        }
        _ => Err(Error::NoRecord { node: node.to_owned() }),
    }
}
