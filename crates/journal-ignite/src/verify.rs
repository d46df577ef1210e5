//! Whether KV shows what HISTORY says. Reads everything, from one snapshot, and changes nothing.

use std::{
    collections::BTreeMap,
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
};

use bytes::Bytes;
use ignite_client::{Row, Value};
use mvcc::Revision;

use crate::{
    Error,
    grid::Grid,
    read::{HISTORY_PAGE_ROWS, LARGE_ROWS},
    rows::{change, number},
};

/// What was found to agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified {
    pub revision: Revision,
    /// That are there.
    pub keys: usize,
    /// That are kept of all keys, deletions among them.
    pub changes: usize,
}

/// What HISTORY says, by copies of the keys: a part of a row would keep all of it, value and page, in
/// memory.
#[derive(Debug, Default)]
struct Said(BTreeMap<Box<[u8]>, Newest>);

/// The newest state of a key, its value as a hash: all values need not fit into memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Newest {
    create_revision: i64,
    mod_revision: i64,
    version: i64,
    lease: i64,
    value: u64,
}

// === impl Grid ===

impl Grid {
    pub(crate) async fn verify(&self) -> Result<Verified, Error> {
        match self.verify_in_pages(HISTORY_PAGE_ROWS).await {
            Err(error) if error.is_too_large() => self.verify_in_pages(LARGE_ROWS).await,
            verified => verified,
        }
    }

    async fn verify_in_pages(&self, page_rows: u32) -> Result<Verified, Error> {
        let snapshot = self.snapshot().await?;
        let mut history = self.history_in(&snapshot, "V", Revision(0), page_rows).await?;
        let revision = history.last();
        let (mut said, mut changes) = (Said::default(), 0);
        while let Some(row) = history.next().await? {
            changes += 1;
            said.see(&row)?;
        }
        let Said(mut newest) = said;
        let keys = newest.len();
        let statement = format!(
            "SELECT K, V, CREATE_REV, MOD_REV, VERSION, LEASE FROM {}.KV ORDER BY K",
            self.schema
        );
        let mut shown = self.query_in(&snapshot, &statement, page_rows).await?;
        while let Some(row) = shown.next().await? {
            let key = bytes(&row, "K")?;
            let (said, found) = (newest.remove(&key[..]), Newest::of_kv(&row)?);
            if said != Some(found) {
                return Err(disagreement(key, said, Some(found)));
            }
        }
        match newest.pop_first() {
            Some((key, said)) => Err(disagreement(&key, Some(said), None)),
            None => Ok(Verified { revision, keys, changes }),
        }
    }
}

// === impl Said ===

impl Said {
    /// Takes in the next change of history.
    fn see(&mut self, row: &Row) -> Result<(), Error> {
        let (_, kv) = change(row)?;
        if kv.is_tombstone() {
            self.0.remove(kv.key());
        } else {
            self.0.insert(kv.key().into(), Newest::of_history(row)?);
        }
        Ok(())
    }
}

// === impl Newest ===

impl Newest {
    fn of_history(row: &Row) -> Result<Self, Error> {
        Self::new(row, "REV")
    }

    fn of_kv(row: &Row) -> Result<Self, Error> {
        Self::new(row, "MOD_REV")
    }

    fn new(row: &Row, mod_revision: &'static str) -> Result<Self, Error> {
        let mut value = DefaultHasher::new();
        bytes(row, "V")?.hash(&mut value);
        Ok(Self {
            create_revision: number(row, "CREATE_REV")?,
            mod_revision: number(row, mod_revision)?,
            version: number(row, "VERSION")?,
            lease: number(row, "LEASE")?,
            value: value.finish(),
        })
    }
}

impl fmt::Display for Newest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { create_revision, mod_revision, version, lease, value } = self;
        write!(
            f,
            "version {version} of revision {mod_revision}, created at {create_revision}, lease \
             {lease:x}, value {value:016x}"
        )
    }
}

fn bytes<'row>(row: &'row Row, column: &'static str) -> Result<&'row Bytes, Error> {
    match row.get(column) {
        Some(Value::Bytes(bytes)) => Ok(bytes),
        found => Err(Error::BadRow { table: "KV", column, found: format!("{found:?}") }),
    }
}

fn disagreement(key: &[u8], said: Option<Newest>, found: Option<Newest>) -> Error {
    let words = |newest: Option<Newest>| {
        newest.map_or_else(|| "nothing".to_owned(), |newest| newest.to_string())
    };
    Error::Disagree { key: key.escape_ascii().to_string(), history: words(said), kv: words(found) }
}

#[cfg(test)]
mod tests {
    use journal::suite::{put, tombstone};
    use mvcc::Position;

    use super::*;
    use crate::{layout::Layout, rows::history};

    #[test]
    fn history_says_what_is_newest_and_deleted_keys_are_gone() {
        let (layout, mut said) = (Layout::new(), Said::default());
        for (revision, kv) in [
            (2, put(2, "a", b"1")),
            (3, put(3, "b", b"1")),
            (4, put(4, "a", b"2")),
            (5, tombstone(5, "b")),
        ] {
            said.see(&history(&layout, Position::first_of(Revision(revision)), &kv)).unwrap();
        }
        let found: Vec<_> = said.0.iter().map(|(key, it)| (&key[..], it.mod_revision)).collect();
        assert_eq!(found, [(&b"a"[..], 4)]);
    }
}
