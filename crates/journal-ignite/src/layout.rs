//! The tables, and the names of their columns. Only data, and the SQL that makes it.
//!
//! | table | what a row is |
//! |---|---|
//! | `HEAD` | the one row that every write compares and sets: format, epoch, revision, last batches |
//! | `HISTORY` | one change of one key; version 0 is a deletion |
//! | `KV` | the newest value of a key that is there |
//! | `META` | what the store keeps without a revision: leases, users, the compacted revision |
//! | `MEMBERS` | a process that serves the journal, and by a number that rises that it lives |

use ignite_client::Columns;

use crate::{Error, options::Options};

/// Of these tables. A journal of another format is refused.
pub(crate) const FORMAT: i32 = 1;
/// The only row of HEAD.
pub(crate) const HEAD_ID: i32 = 0;
/// Revisions that lie together. With one partition all do; with more, a range of history is asked of
/// few of them.
pub(crate) const BUCKET_REVISIONS: i64 = 100;
/// Above every request limit of the store, which bounds keys and values.
const VARBINARY_BYTES: u32 = 2_147_483_647;

pub(crate) const HEAD_COLUMNS: [&str; 11] = [
    "ID",
    "FORMAT",
    "EPOCH",
    "REV",
    "BATCH_EPOCH",
    "BATCH_NUMBER",
    "EARLIER_EPOCH",
    "EARLIER_NUMBER",
    "META_EPOCH",
    "META_NUMBER",
    "FORGOTTEN",
];

/// Names of columns, made once.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) head: Columns,
    pub(crate) head_key: Columns,
    pub(crate) history: Columns,
    pub(crate) history_key: Columns,
    pub(crate) kv: Columns,
    pub(crate) kv_key: Columns,
    pub(crate) meta: Columns,
    pub(crate) meta_key: Columns,
    pub(crate) members: Columns,
    pub(crate) members_key: Columns,
}

// === impl Layout ===

impl Layout {
    pub(crate) fn new() -> Self {
        Self {
            head: Columns::new(HEAD_COLUMNS),
            head_key: Columns::new(["ID"]),
            history: Columns::new([
                "BUCKET",
                "REV",
                "SUB",
                "K",
                "V",
                "CREATE_REV",
                "VERSION",
                "LEASE",
            ]),
            history_key: Columns::new(["BUCKET", "REV", "SUB"]),
            kv: Columns::new(["K", "V", "CREATE_REV", "MOD_REV", "VERSION", "LEASE"]),
            kv_key: Columns::new(["K"]),
            meta: Columns::new(["K", "V"]),
            meta_key: Columns::new(["K"]),
            members: Columns::new(["ID", "NAME", "PEER_URLS", "CLIENT_URLS", "EPOCH", "BEAT"]),
            members_key: Columns::new(["ID"]),
        }
    }
}

/// The name goes into SQL unquoted, so it must be one that needs no quotes.
pub(crate) fn check_schema(name: &str) -> Result<(), Error> {
    let begins = name.starts_with(|first: char| first.is_ascii_uppercase());
    let is_plain = |each: char| each.is_ascii_uppercase() || each.is_ascii_digit() || each == '_';
    if begins && name.chars().all(is_plain) {
        return Ok(());
    }
    Err(Error::SchemaName { name: name.to_owned() })
}

/// Makes what is missing and leaves what is there.
pub(crate) fn script(options: &Options) -> String {
    let Options { schema, partitions, replicas, .. } = options;
    let bytes = format!("VARBINARY({VARBINARY_BYTES})");
    format!(
        "CREATE SCHEMA IF NOT EXISTS {schema};
CREATE ZONE IF NOT EXISTS {schema} (PARTITIONS {partitions}, REPLICAS {replicas}) STORAGE PROFILES ['default'];
CREATE TABLE IF NOT EXISTS {schema}.HEAD (ID INT PRIMARY KEY, FORMAT INT NOT NULL, EPOCH BIGINT NOT NULL, \
REV BIGINT NOT NULL, BATCH_EPOCH BIGINT NOT NULL, BATCH_NUMBER BIGINT NOT NULL, EARLIER_EPOCH BIGINT NOT NULL, \
EARLIER_NUMBER BIGINT NOT NULL, META_EPOCH BIGINT NOT NULL, META_NUMBER BIGINT NOT NULL, \
FORGOTTEN BIGINT NOT NULL) ZONE {schema};
CREATE TABLE IF NOT EXISTS {schema}.HISTORY (BUCKET BIGINT, REV BIGINT, SUB INT, K {bytes} NOT NULL, \
V {bytes} NOT NULL, CREATE_REV BIGINT NOT NULL, VERSION BIGINT NOT NULL, LEASE BIGINT NOT NULL, \
PRIMARY KEY USING SORTED (BUCKET, REV, SUB)) COLOCATE BY (BUCKET) ZONE {schema};
CREATE TABLE IF NOT EXISTS {schema}.KV (K {bytes}, V {bytes} NOT NULL, CREATE_REV BIGINT NOT NULL, \
MOD_REV BIGINT NOT NULL, VERSION BIGINT NOT NULL, LEASE BIGINT NOT NULL, PRIMARY KEY USING SORTED (K)) ZONE {schema};
CREATE INDEX IF NOT EXISTS KV_MOD_REV ON {schema}.KV USING SORTED (MOD_REV);
CREATE INDEX IF NOT EXISTS KV_LEASE ON {schema}.KV USING HASH (LEASE);
CREATE TABLE IF NOT EXISTS {schema}.META (K {bytes}, V {bytes} NOT NULL, PRIMARY KEY USING SORTED (K)) ZONE {schema};
CREATE TABLE IF NOT EXISTS {schema}.MEMBERS (ID BIGINT PRIMARY KEY, NAME VARCHAR(1024) NOT NULL, \
PEER_URLS VARCHAR(4096) NOT NULL, CLIENT_URLS VARCHAR(4096) NOT NULL, EPOCH BIGINT NOT NULL, \
BEAT BIGINT NOT NULL) ZONE {schema};"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_needs_a_plain_name() {
        for good in ["W", "WINDLASS", "A_1"] {
            check_schema(good).unwrap();
        }
        for bad in ["", "w", "1A", "_A", "A-B", "A;DROP", "A B", "\"A\""] {
            assert!(check_schema(bad).is_err(), "{bad}");
        }
    }
}
