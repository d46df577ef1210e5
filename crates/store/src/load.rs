//! From a journal to the state it stands for.

use std::sync::Arc;

use journal::{Batch, BatchId, Epoch, Journal, Size};
use mvcc::Keyspace;

use crate::{
    alarm::Alarms,
    auth,
    context::Identity,
    meta::{self, Meta},
    sequencer::Loaded,
};

/// What a journal stands for, and who this member is.
pub(crate) struct Opened {
    pub(crate) state: Loaded,
    pub(crate) identity: Identity,
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
    #[error("the new store's identity could not be written")]
    Identity {
        #[source]
        source: journal::AppendError,
    },
}

/// Takes the writer's role and reads everything back. Gives an empty journal its identity.
pub(crate) fn open(journal: &Arc<dyn Journal>) -> Result<Opened, LoadError> {
    let epoch = journal.claim().map_err(|source| LoadError::Claim { source })?;
    let entries = journal.meta().map_err(|source| LoadError::Read { source })?;
    let meta = Meta::parse(entries).map_err(|source| LoadError::Meta { source })?;
    let auth_entries = meta.auth.iter().map(|(key, value)| (&**key, &**value));
    let auth = auth::State::load(auth_entries).map_err(|source| LoadError::Auth { source })?;
    let keyspace = replay(&**journal, &meta)?;
    let (identity, batch_number) = identify(&**journal, &meta, epoch)?;
    let size = journal.size().map_err(|source| LoadError::Read { source })?;
    let state = Loaded { keyspace, alarms: Alarms::new(meta.alarms), auth };
    Ok(Opened { state, identity, size, batch_number })
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
        return Ok((Identity { cluster_id, member_id, term: epoch }, 0));
    }
    let new_id = || rand::random_range(1..=u64::MAX);
    let cluster_id = meta.cluster_id.unwrap_or_else(new_id);
    let member_id = meta.member_id.unwrap_or_else(new_id);
    let batch = Batch {
        id: BatchId { epoch, number: 1 },
        records: Vec::new(),
        meta: vec![meta::cluster_id(cluster_id), meta::member_id(member_id)],
    };
    journal.append(epoch, &batch).map_err(|source| LoadError::Identity { source })?;
    Ok((Identity { cluster_id, member_id, term: epoch }, 1))
}
