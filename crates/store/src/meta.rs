//! What is kept beside the revisions, as entries of the journal's meta table. Owns the spelling of
//! every key and value there but auth's.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use journal::MetaChange;
use mvcc::{LeaseId, Revision};

const CLUSTER_ID: &[u8] = b"identity/cluster";
const MEMBER_ID: &[u8] = b"identity/member";
/// What members sign simple tokens with, so that each knows those of the others.
const TOKEN_SECRET: &[u8] = b"identity/tokens";
const COMPACTED: &[u8] = b"compacted";
/// Of a shared journal: up to which compaction all that was dropped is given up.
const GIVEN_UP: &[u8] = b"given-up";
const LEASE_PREFIX: &[u8] = journal::WRITERS_META;
const ALARM_PREFIX: &[u8] = b"alarm/";
const AUTH_PREFIX: &[u8] = b"auth/";
/// There from the first image of an import to its last.
const IMPORTING: &[u8] = b"importing";
/// There from the first image of a restored snapshot to its last.
const RESTORING: &[u8] = b"restoring";

pub(crate) const TOKEN_SECRET_BYTES: usize = 32;

/// The meta table as the store understands it.
#[derive(Debug, Default)]
pub(crate) struct Meta {
    pub(crate) cluster_id: Option<u64>,
    pub(crate) member_id: Option<u64>,
    pub(crate) token_secret: Option<Bytes>,
    pub(crate) compacted: Option<Revision>,
    pub(crate) given_up: Option<Revision>,
    pub(crate) leases: Vec<(LeaseId, i64)>,
    pub(crate) alarms: Vec<Alarm>,
    /// Entries that belong to auth, left as they are.
    pub(crate) auth: Vec<(Bytes, Bytes)>,
}

/// An alarm of a member, by etcd's number of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Alarm {
    pub(crate) kind: i32,
    pub(crate) member_id: u64,
}

/// Why the meta table of a journal cannot be this program's.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("unknown entry `{key}` in the journal's meta table")]
    UnknownKey { key: String },
    #[error("entry `{key}` of the journal's meta table is malformed")]
    Malformed { key: String },
    #[error("an import was begun here and did not end, so that not all keys are there")]
    Importing,
    #[error("a snapshot began to be restored here and is not all there")]
    Restoring,
}

// === impl Meta ===

impl Meta {
    pub(crate) fn parse(entries: Vec<(Bytes, Bytes)>) -> Result<Self, Error> {
        let mut meta = Self::default();
        for (key, value) in entries {
            meta.parse_entry(key, value)?;
        }
        Ok(meta)
    }

    fn parse_entry(&mut self, key: Bytes, value: Bytes) -> Result<(), Error> {
        if key.starts_with(AUTH_PREFIX) {
            self.auth.push((key, value));
            return Ok(());
        }
        let malformed = || Error::Malformed { key: key.escape_ascii().to_string() };
        match &*key {
            CLUSTER_ID => self.cluster_id = Some(number(&value).ok_or_else(malformed)?),
            MEMBER_ID => self.member_id = Some(number(&value).ok_or_else(malformed)?),
            TOKEN_SECRET if value.len() == TOKEN_SECRET_BYTES => self.token_secret = Some(value),
            TOKEN_SECRET => return Err(malformed()),
            COMPACTED => self.compacted = Some(revision(&value).ok_or_else(malformed)?),
            GIVEN_UP => self.given_up = Some(revision(&value).ok_or_else(malformed)?),
            IMPORTING => return Err(Error::Importing),
            RESTORING => return Err(Error::Restoring),
            key if key.starts_with(LEASE_PREFIX) => {
                let id = number(&key[LEASE_PREFIX.len()..]).ok_or_else(malformed)?;
                let ttl_s = number(&value).ok_or_else(malformed)?;
                self.leases.push((LeaseId(id.cast_signed()), ttl_s.cast_signed()));
            }
            key if key.starts_with(ALARM_PREFIX) => {
                self.alarms.push(Alarm::parse(&key[ALARM_PREFIX.len()..]).ok_or_else(malformed)?);
            }
            key => return Err(Error::UnknownKey { key: key.escape_ascii().to_string() }),
        }
        Ok(())
    }
}

// === impl Alarm ===

impl Alarm {
    fn parse(mut bytes: &[u8]) -> Option<Self> {
        let kind = bytes.try_get_i32().ok()?;
        let member_id = number(bytes)?;
        Some(Self { kind, member_id })
    }

    fn key(self) -> Bytes {
        let mut key = BytesMut::from(ALARM_PREFIX);
        key.put_i32(self.kind);
        key.put_u64(self.member_id);
        key.freeze()
    }

    pub(crate) fn raised(self) -> MetaChange {
        MetaChange { key: self.key(), value: Some(Bytes::new()) }
    }

    pub(crate) fn cleared(self) -> MetaChange {
        MetaChange { key: self.key(), value: None }
    }
}

/// Whether a store can be served from a journal with these entries: it is this program's, and whatever
/// filled it came to an end.
///
/// # Errors
///
/// If not, why.
pub fn check(entries: Vec<(Bytes, Bytes)>) -> Result<(), Error> {
    Meta::parse(entries).map(|_| ())
}

/// Whether an entry says which store this is, as opposed to what it holds.
pub(crate) fn is_identity(key: &[u8]) -> bool {
    key == CLUSTER_ID || key == MEMBER_ID || key == TOKEN_SECRET
}

pub(crate) fn cluster_id(id: u64) -> MetaChange {
    MetaChange { key: Bytes::from_static(CLUSTER_ID), value: Some(encode(id)) }
}

pub(crate) fn member_id(id: u64) -> MetaChange {
    MetaChange { key: Bytes::from_static(MEMBER_ID), value: Some(encode(id)) }
}

pub(crate) fn token_secret(secret: [u8; TOKEN_SECRET_BYTES]) -> MetaChange {
    MetaChange {
        key: Bytes::from_static(TOKEN_SECRET),
        value: Some(Bytes::copy_from_slice(&secret)),
    }
}

pub(crate) fn import_begun() -> MetaChange {
    MetaChange { key: Bytes::from_static(IMPORTING), value: Some(Bytes::new()) }
}

pub(crate) fn import_ended() -> MetaChange {
    MetaChange { key: Bytes::from_static(IMPORTING), value: None }
}

pub(crate) fn restore_begun() -> MetaChange {
    MetaChange { key: Bytes::from_static(RESTORING), value: Some(Bytes::new()) }
}

pub(crate) fn restore_ended() -> MetaChange {
    MetaChange { key: Bytes::from_static(RESTORING), value: None }
}

pub(crate) fn compacted(revision: Revision) -> MetaChange {
    MetaChange {
        key: Bytes::from_static(COMPACTED),
        value: Some(encode(revision.0.cast_unsigned())),
    }
}

pub(crate) fn given_up(to: Revision) -> MetaChange {
    MetaChange { key: Bytes::from_static(GIVEN_UP), value: Some(encode(to.0.cast_unsigned())) }
}

pub(crate) fn lease_granted(id: LeaseId, ttl_s: i64) -> MetaChange {
    MetaChange { key: lease_key(id), value: Some(encode(ttl_s.cast_unsigned())) }
}

pub(crate) fn lease_gone(id: LeaseId) -> MetaChange {
    MetaChange { key: lease_key(id), value: None }
}

fn lease_key(id: LeaseId) -> Bytes {
    let mut key = BytesMut::from(LEASE_PREFIX);
    key.put_i64(id.0);
    key.freeze()
}

fn encode(number: u64) -> Bytes {
    Bytes::copy_from_slice(&number.to_be_bytes())
}

fn number(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(bytes.try_into().ok()?))
}

fn revision(bytes: &[u8]) -> Option<Revision> {
    Some(Revision(number(bytes)?.cast_signed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let alarm = Alarm { kind: 1, member_id: 7 };
        let changes = [
            cluster_id(1),
            member_id(u64::MAX),
            token_secret([7; TOKEN_SECRET_BYTES]),
            compacted(Revision(-1)),
            given_up(Revision(7)),
            lease_granted(LeaseId(-5), 60),
            alarm.raised(),
        ];
        let entries = changes.map(|change| (change.key, change.value.unwrap()));
        let meta = Meta::parse(entries.into()).unwrap();
        assert_eq!((meta.cluster_id, meta.member_id), (Some(1), Some(u64::MAX)));
        assert_eq!(meta.token_secret.as_deref(), Some(&[7; TOKEN_SECRET_BYTES][..]));
        assert_eq!((meta.compacted, meta.given_up), (Some(Revision(-1)), Some(Revision(7))));
        assert_eq!(meta.leases, [(LeaseId(-5), 60)]);
        assert_eq!(meta.alarms, [alarm]);
    }

    #[test]
    fn foreign_and_broken_entries_are_named() {
        let parse = |key: &'static str, value: &'static str| {
            Meta::parse(vec![(key.into(), value.into())]).unwrap_err().to_string()
        };
        assert_eq!(parse("zone", ""), "unknown entry `zone` in the journal's meta table");
        assert_eq!(
            parse("compacted", "x"),
            "entry `compacted` of the journal's meta table is malformed"
        );
    }
}
