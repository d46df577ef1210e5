//! From a journal to the state it stands for.

use std::sync::Arc;

use bytes::Bytes;
use journal::{AppendError, Batch, BatchId, Epoch, Journal, MetaChange, Size};
use mvcc::Keyspace;

use crate::{
    alarm::Alarms,
    auth,
    context::Identity,
    meta::{self, Meta},
    sequencer::Loaded,
};

/// How often a cluster is founded anew because others did so at the same time.
const JOIN_ATTEMPTS_MAX: usize = 16;

/// What a journal stands for, and who this member is.
pub(crate) struct Opened {
    pub(crate) state: Loaded,
    pub(crate) identity: Identity,
    pub(crate) epoch: Epoch,
    /// What the journal takes already.
    pub(crate) size: Size,
    /// The number of the last batch written under this epoch.
    pub(crate) batch_number: u64,
}

/// Why a journal's content could not be taken over.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("the writer's role could not be taken")]
    Claim {
        #[source]
        source: journal::Error,
    },
    #[error("the journal could not be read")]
    Read {
        #[source]
        source: journal::Error,
    },
    #[error("the journal belongs to another program or version")]
    Meta {
        #[source]
        source: meta::Error,
    },
    #[error("users and roles could not be read")]
    Auth {
        #[source]
        source: auth::LoadError,
    },
    #[error("the compacted revision is not in the journal")]
    Compacted {
        #[source]
        source: mvcc::Error,
    },
    #[error("lease {id} is in the journal twice")]
    Lease {
        id: i64,
        #[source]
        source: mvcc::Error,
    },
    #[error(
        "others were in the way of the new store's identity {JOIN_ATTEMPTS_MAX} times in a row"
    )]
    Crowded,
    #[error("the new store's identity could not be written")]
    Identity {
        #[source]
        source: journal::AppendError,
    },
}

/// Takes the writer's role and reads everything back. Gives an empty journal its identity.
pub(crate) fn open(journal: &Arc<dyn Journal>) -> Result<Opened, LoadError> {
    let epoch = journal.claim().map_err(|source| LoadError::Claim { source })?;
    let meta = meta(&**journal)?;
    let auth = auth(&meta)?;
    let keyspace = replay(&**journal, &meta)?;
    let (identity, batch_number) = identify(&**journal, &meta, epoch)?;
    let size = journal.size().map_err(|source| LoadError::Read { source })?;
    let state = Loaded { keyspace, alarms: Alarms::new(meta.alarms), auth };
    Ok(Opened { state, identity, epoch, size, batch_number })
}

pub(crate) fn meta(journal: &dyn Journal) -> Result<Meta, LoadError> {
    let entries = journal.meta().map_err(|source| LoadError::Read { source })?;
    Meta::parse(entries).map_err(|source| LoadError::Meta { source })
}

pub(crate) fn auth(meta: &Meta) -> Result<auth::State, LoadError> {
    let entries = meta.auth.iter().map(|(key, value)| (&**key, &**value));
    auth::State::load(entries).map_err(|source| LoadError::Auth { source })
}

/// The id of the cluster that a shared journal belongs to, and what its members sign tokens with.
/// Members have ids for as long as they run, so only these are kept; whoever finds one missing writes
/// it, and of several who try at once all believe the one that is there.
pub(crate) fn join(journal: &dyn Journal) -> Result<(Identity, Bytes), LoadError> {
    let member_id = new_id();
    for _ in 0..JOIN_ATTEMPTS_MAX {
        let known = meta(journal)?;
        if let (Some(cluster_id), Some(secret)) = (known.cluster_id, known.token_secret) {
            return Ok((Identity { cluster_id, member_id }, secret));
        }
        let epoch = journal.claim().map_err(|source| LoadError::Claim { source })?;
        // Looked at again: what somebody wrote before the claim stays, and nobody writes after it.
        let founding = Batch {
            id: BatchId { epoch, number: 1 },
            records: Vec::new(),
            meta: missing(&meta(journal)?),
        };
        if founding.meta.is_empty() {
            continue;
        }
        match journal.append(epoch, &founding) {
            // What is there by now is read again, whoever wrote it.
            Ok(()) | Err(AppendError::Fenced { .. } | AppendError::Unknown { .. }) => {}
            Err(source) => return Err(LoadError::Identity { source }),
        }
    }
    Err(LoadError::Crowded)
}

fn missing(known: &Meta) -> Vec<MetaChange> {
    let cluster_id = known.cluster_id.is_none().then(|| meta::cluster_id(new_id()));
    let secret = known.token_secret.is_none().then(|| meta::token_secret(rand::random()));
    cluster_id.into_iter().chain(secret).collect()
}

fn new_id() -> u64 {
    rand::random_range(1..=u64::MAX)
}

fn replay(journal: &dyn Journal, meta: &Meta) -> Result<Keyspace, LoadError> {
    let mut keyspace = Keyspace::new();
    for (id, ttl_s) in &meta.leases {
        let granted = keyspace.grant(*id, *ttl_s);
        granted.map_err(|source| LoadError::Lease { id: id.0, source })?;
    }
    journal
        .heads(&mut |head| keyspace.replay(head.position, &head.kv))
        .map_err(|source| LoadError::Read { source })?;
    keyspace.replay_end(journal.durable().map_err(|source| LoadError::Read { source })?);
    if let Some(compacted) = meta.compacted {
        keyspace.compact(compacted).map_err(|source| LoadError::Compacted { source })?;
    }
    Ok(keyspace)
}

/// Clients tell stores apart by these ids, so a new store gets random ones, and keeps them.
fn identify(
    journal: &dyn Journal,
    meta: &Meta,
    epoch: Epoch,
) -> Result<(Identity, u64), LoadError> {
    if let (Some(cluster_id), Some(member_id)) = (meta.cluster_id, meta.member_id) {
        return Ok((Identity { cluster_id, member_id }, 0));
    }
    let cluster_id = meta.cluster_id.unwrap_or_else(new_id);
    let member_id = meta.member_id.unwrap_or_else(new_id);
    let batch = Batch {
        id: BatchId { epoch, number: 1 },
        records: Vec::new(),
        meta: vec![meta::cluster_id(cluster_id), meta::member_id(member_id)],
    };
    journal.append(epoch, &batch).map_err(|source| LoadError::Identity { source })?;
    Ok((Identity { cluster_id, member_id }, 1))
}
