//! What another store holds, as images that fill an empty journal. Owns what such a journal says of
//! itself until the last image is in it. Reads nothing and writes nothing: whoever imports asks the
//! other store, and hands the images to the journal.
//!
//! ```text
//! b mod 3, a mod 5, c mod 5, revision 9   ──►   mark │ 3: b │ 5: a, c │ up to 9, compacted 9, no mark
//! ```
//!
//! The revisions, versions and leases of keys stay what they were. History is not there: the journal
//! says that it was compacted at the revision of the import.

use std::collections::BTreeSet;

use bytes::Bytes;
use etcd_api::{authpb, mvccpb::KeyValue};
use journal::{Image, MetaChange};
use mvcc::{Change, LeaseId, Record, Revision};

use crate::{
    auth::{self, Passwords},
    lease::TTL_MIN_S,
    meta,
};

/// Bytes of key-values in an image, about. Each image is one sync of the journal.
const IMAGE_BYTES: usize = 2 * 1024 * 1024;

/// The work factor of etcd's own default.
const PASSWORD_COST: u32 = 10;

/// Takes key-values in the order of their revisions and makes images of them.
#[derive(Debug)]
pub struct Import {
    /// Where the other store stood.
    revision: Revision,
    /// Complete but for the last one, to which more keys of its revision may come.
    records: Vec<Record>,
    records_bytes: usize,
    /// The leases that keys are attached to.
    attached: BTreeSet<i64>,
}

/// What the other store keeps beside its keys.
#[derive(Clone, Debug, Default)]
pub struct Beside {
    pub leases: Vec<Lease>,
    pub auth: Auth,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    pub id: i64,
    pub ttl_s: i64,
}

/// Users without a password hash cannot log in before they are given a password.
#[derive(Clone, Debug, Default)]
pub struct Auth {
    pub is_enabled: bool,
    pub revision: u64,
    pub users: Vec<authpb::User>,
    pub roles: Vec<authpb::Role>,
}

/// Why what came cannot be what a store holds at one revision.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("a key of revision {found} came after one of revision {before}")]
    Order { before: i64, found: i64 },
    #[error("key `{key}` came twice, or not in order, at revision {revision}")]
    KeyOrder { key: String, revision: i64 },
    #[error("a key has revision {found}, but the store was at {revision}")]
    Future { found: i64, revision: i64 },
    #[error(
        "key `{key}` cannot be: created at {create_revision}, changed at {mod_revision}, version {version}"
    )]
    Impossible { key: String, create_revision: i64, mod_revision: i64, version: i64 },
}

// === impl Import ===

impl Import {
    /// An import of a store as it was at `revision`.
    #[must_use]
    pub fn new(revision: i64) -> Self {
        Self {
            revision: Revision(revision),
            records: Vec::new(),
            records_bytes: 0,
            attached: BTreeSet::new(),
        }
    }

    /// The first image: a journal that has this one but not the last cannot be served.
    #[must_use]
    pub fn begin(&self) -> Image {
        let meta = vec![meta::import_begun()];
        Image { last: Revision::INITIAL, records: Vec::new(), meta }
    }

    /// Takes the next key-value, in order of revision, and of key where one revision has several.
    /// Returns an image when enough has gathered.
    pub fn push(&mut self, kv: KeyValue) -> Result<Option<Image>, Error> {
        self.check(&kv)?;
        let revision = Revision(kv.mod_revision());
        let begins_revision = self.records.last().is_none_or(|last| last.revision < revision);
        let is_full = begins_revision && self.records_bytes >= IMAGE_BYTES;
        let image = is_full.then(|| self.cut());
        self.add(revision, kv);
        Ok(image)
    }

    /// The last image.
    #[must_use]
    pub fn finish(mut self, beside: Beside) -> Image {
        let mut meta = self.lease_entries(&beside.leases);
        meta.extend(auth_entries(beside.auth));
        if self.revision > Revision::INITIAL {
            meta.push(meta::compacted(self.revision));
        }
        meta.push(meta::import_ended());
        Image { last: self.revision.max(Revision::INITIAL), meta, ..self.cut() }
    }

    fn check(&self, kv: &KeyValue) -> Result<(), Error> {
        let parts = kv.parts();
        let (create_revision, mod_revision) = (parts.create_revision, parts.mod_revision);
        let key = || parts.key.escape_ascii().to_string();
        let version = parts.version;
        let is_possible = Revision::INITIAL.0 < create_revision
            && (1..=mod_revision - create_revision + 1).contains(&version);
        if !is_possible {
            return Err(Error::Impossible { key: key(), create_revision, mod_revision, version });
        }
        if mod_revision > self.revision.0 {
            return Err(Error::Future { found: mod_revision, revision: self.revision.0 });
        }
        let Some(last) = self.records.last() else { return Ok(()) };
        let last_key = last.changes.last().expect("a record has changes").kv.key();
        match mod_revision.cmp(&last.revision.0) {
            std::cmp::Ordering::Less => {
                Err(Error::Order { before: last.revision.0, found: mod_revision })
            }
            std::cmp::Ordering::Equal if parts.key <= last_key => {
                Err(Error::KeyOrder { key: key(), revision: mod_revision })
            }
            _ => Ok(()),
        }
    }

    fn add(&mut self, revision: Revision, kv: KeyValue) {
        if kv.lease() != LeaseId::NONE.0 {
            self.attached.insert(kv.lease());
        }
        self.records_bytes += kv.encoded().len();
        match self.records.last_mut() {
            Some(last) if last.revision == revision => {
                let sub = u32::try_from(last.changes.len()).expect("a revision is one transaction");
                last.changes.push(Change { sub, kv });
            }
            _ => self.records.push(Record { revision, changes: vec![Change { sub: 0, kv }] }),
        }
    }

    fn cut(&mut self) -> Image {
        let records = std::mem::take(&mut self.records);
        self.records_bytes = 0;
        let last = records.last().map_or(Revision::INITIAL, |record| record.revision);
        Image { last, records, meta: Vec::new() }
    }

    /// A lease that ended while its keys were read is given the shortest time there is, so that its
    /// keys go here too.
    fn lease_entries(&self, leases: &[Lease]) -> Vec<MetaChange> {
        let known: BTreeSet<i64> = leases.iter().map(|lease| lease.id).collect();
        let ended = self.attached.difference(&known).map(|id| Lease { id: *id, ttl_s: TTL_MIN_S });
        let all = leases.iter().copied().chain(ended);
        all.map(|lease| meta::lease_granted(LeaseId(lease.id), lease.ttl_s)).collect()
    }
}

/// The hash under which a user goes on with a password that is known. Salted at random.
///
/// # Errors
///
/// If the password is longer than any store accepts.
pub async fn hash_password(
    password: String,
) -> Result<Bytes, impl std::error::Error + Send + Sync + 'static> {
    Passwords::new(PASSWORD_COST).hash(password).await.map(|hash| hash.to_bytes())
}

fn auth_entries(auth: Auth) -> Vec<MetaChange> {
    let Auth { is_enabled, revision, users, roles } = auth;
    if users.is_empty() && roles.is_empty() {
        return Vec::new();
    }
    let mut entries = vec![auth::meta::enabled(is_enabled), auth::meta::revision(revision)];
    entries.extend(users.iter().map(auth::meta::stored_user));
    entries.extend(roles.into_iter().map(|mut role| {
        role.key_permission.sort_by(|one, next| one.key.cmp(&next.key));
        auth::meta::stored_role(&role)
    }));
    entries
}

#[cfg(test)]
mod tests;
