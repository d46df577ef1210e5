//! A record deleted, so that its node starts afresh when it returns.

use serde::Serialize;

use super::{Admin, Error, Mode};
use crate::{
    core::{
        object::Document,
        record::{Stored, Unreadable},
    },
    kubernetes::Guard,
};

/// What was, or would be, deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Forgotten {
    pub node: String,
    /// How many labels are gone with it; unknown if the record could not be read.
    pub labels: Option<usize>,
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
        if mode == Mode::Write {
            let guard = Guard { uid: document.uid, rv: document.rv };
            self.objects.records.delete(node, guard).await?;
        }
        Ok(Forgotten { node: node.to_owned(), labels, queued })
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
