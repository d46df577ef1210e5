//! Lists of everything: what a relist and a sweep compare. Reads only.

use std::collections::BTreeMap;

use crate::{
    core::{
        keys::NODE_UID,
        ledger::Ledger,
        names::{NodeHash, TransactionName},
        object::{Document, Uid},
        rv::{ResourceVersion, RvError},
        watch::{checkpoints::Saved, engine::Roll, relist::Listing},
    },
    kubernetes::{self, Objects},
};

/// Why nothing can be said about how things stand.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("the server cannot be read")]
    Read(#[from] kubernetes::Error),
    #[error("the server's position cannot be used")]
    Position(#[source] RvError),
}

/// Where the server is now.
pub(super) async fn position(objects: &Objects) -> Result<ResourceVersion, Error> {
    objects.nodes.position().await?.parse().map_err(Error::Position)
}

/// For a relist. Nodes come first: whatever happens to them after this is seen by the watch.
pub(super) async fn listing(objects: &Objects) -> Result<Listing, Error> {
    let nodes = objects.nodes.list().await?;
    let position = nodes.rv.parse().map_err(Error::Position)?;
    let checkpoints = objects.checkpoints.list_headers().await?.items;
    let records = objects.records.list_headers().await?.items;
    let transactions = objects.transactions.list_headers().await?.items;
    Ok(Listing {
        position,
        nodes: nodes.items,
        checkpoints: checkpoints.iter().filter_map(saved).collect(),
        records: ledgers(&records),
        queued: transactions.iter().filter_map(queued).collect(),
    })
}

/// For a sweep.
pub(super) async fn roll(objects: &Objects) -> Result<Roll, Error> {
    let nodes = objects.nodes.list().await?;
    let position = nodes.rv.parse().map_err(Error::Position)?;
    let records = objects.records.list_headers().await?.items;
    let stored = ledgers(&records).into_values().filter_map(|ledger| ledger.stored_uid).collect();
    Ok(Roll { position, nodes: nodes.items, stored })
}

/// A checkpoint, of which the metadata is enough. Other ConfigMaps may lie in the namespace, as
/// `kube-root-ca.crt` does in every one.
pub(super) fn saved(document: &Document) -> Option<Saved> {
    document.name.parse::<NodeHash>().ok()?;
    match Saved::decode(document) {
        Ok(saved) => Some(saved),
        Err(error) => {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(checkpoint = document.name, error, "passed over a broken checkpoint");
            None
        }
    }
}

/// Records whose bookkeeping cannot be read are none: nothing follows from them.
fn ledgers(records: &[Document]) -> BTreeMap<String, Ledger> {
    let ledgers = records.iter().filter_map(|record| match Ledger::decode(&record.annotations) {
        Ok(ledger) => Some((record.name.clone(), ledger)),
        Err(error) => {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(
                node = record.name,
                error,
                "passed over a record with broken bookkeeping"
            );
            None
        }
    });
    ledgers.collect()
}

/// The incarnation that a queued transaction is about.
fn queued(header: &Document) -> Option<Uid> {
    header.name.parse::<TransactionName>().ok()?;
    header.annotations.get(NODE_UID).cloned().map(Uid)
}
