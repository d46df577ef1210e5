//! A record's bookkeeping: whose labels it has and to whom they were given. It stands in
//! annotations, so that it can be read without the labels.

use std::{collections::BTreeMap, str::FromStr};

use jiff::{SignedDuration, Timestamp};

use super::{
    keys::{
        RESTORED_AT, RESTORED_NODE_RV, RESTORED_RV, RESTORED_UID, STORED_AT, STORED_RV, STORED_UID,
    },
    object::Uid,
    rv::{ResourceVersion, RvError},
};

type Annotations = BTreeMap<String, String>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// The incarnation that the labels came from; unknown for records written by hand or by an
    /// earlier implementation.
    pub stored_uid: Option<Uid>,
    pub stored_rv: Option<ResourceVersion>,
    pub stored_at: Option<Timestamp>,
    pub restored: Option<Restored>,
}

/// The incarnation that the labels were last given to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    pub uid: Uid,
    /// Which snapshot it was given.
    pub rv: ResourceVersion,
    pub at: Option<Timestamp>,
    /// The node's version that the restore was decided on.
    pub node_rv: Option<ResourceVersion>,
}

/// Why the bookkeeping cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    #[error("the annotation {key} is no resource version")]
    Rv {
        key: &'static str,
        #[source]
        source: RvError,
    },
    #[error("the annotation {key} is no time")]
    Time {
        key: &'static str,
        #[source]
        source: jiff::Error,
    },
}

// === impl Ledger ===

impl Ledger {
    pub fn decode(annotations: &Annotations) -> Result<Self, LedgerError> {
        let rv = |key| parse(annotations, key, |source| LedgerError::Rv { key, source });
        let time = |key| parse(annotations, key, |source| LedgerError::Time { key, source });
        let uid = |key: &str| annotations.get(key).cloned().map(Uid);
        let (at, node_rv) = (time(RESTORED_AT)?, rv(RESTORED_NODE_RV)?);
        let restored = uid(RESTORED_UID).zip(rv(RESTORED_RV)?);
        Ok(Self {
            stored_uid: uid(STORED_UID),
            stored_rv: rv(STORED_RV)?,
            stored_at: time(STORED_AT)?,
            restored: restored.map(|(uid, rv)| Restored { uid, rv, at, node_rv }),
        })
    }

    /// Replaces what was there.
    pub fn encode_into(&self, annotations: &mut Annotations) {
        let restored = self.restored.as_ref();
        let entries = [
            (STORED_UID, self.stored_uid.as_ref().map(ToString::to_string)),
            (STORED_RV, self.stored_rv.as_ref().map(ToString::to_string)),
            (STORED_AT, self.stored_at.map(|at| at.to_string())),
            (RESTORED_UID, restored.map(|restored| restored.uid.to_string())),
            (RESTORED_RV, restored.map(|restored| restored.rv.to_string())),
            (RESTORED_AT, restored.and_then(|restored| restored.at).map(|at| at.to_string())),
            (
                RESTORED_NODE_RV,
                restored.and_then(|given| Some(given.node_rv.as_ref()?.to_string())),
            ),
        ];
        for (key, value) in entries {
            annotations.remove(key);
            annotations.extend(value.map(|value| (key.to_owned(), value)));
        }
    }

    /// Whether the labels are too old to be given to anyone. Records without a time never are.
    #[must_use]
    pub fn is_expired(&self, retention: SignedDuration, now: Timestamp) -> bool {
        self.stored_at.is_some_and(|stored_at| now.duration_since(stored_at) > retention)
    }

    #[must_use]
    pub fn is_given_to(&self, uid: &Uid) -> bool {
        self.restored.as_ref().is_some_and(|restored| restored.uid == *uid)
    }
}

fn parse<T: FromStr>(
    annotations: &Annotations,
    key: &str,
    error: impl Fn(T::Err) -> LedgerError,
) -> Result<Option<T>, LedgerError> {
    annotations.get(key).map(|text| text.parse().map_err(error)).transpose()
}
