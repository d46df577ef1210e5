//! Changes as rows, and rows as changes.

use std::collections::BTreeMap;

use bytes::Bytes;
use etcd_api::mvccpb::{KeyValue, KeyValueParts};
use ignite_client::{Row, Value};
use journal::MetaChange;
use mvcc::{Position, Record, Revision};

use crate::{
    Error,
    layout::{BUCKET_REVISIONS, Layout},
};

/// What a write does to the tables beside HEAD.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) history: Vec<Row>,
    pub(crate) history_unset: Vec<Row>,
    pub(crate) kv_set: Vec<Row>,
    pub(crate) kv_unset: Vec<Row>,
    pub(crate) meta_set: Vec<Row>,
    pub(crate) meta_unset: Vec<Row>,
}

// === impl Changes ===

impl Changes {
    pub(crate) fn of(layout: &Layout, records: &[Record], meta: &[MetaChange]) -> Self {
        let mut changes = Self::default();
        // The last change of a key is the one that stays.
        let mut newest: BTreeMap<Bytes, (Revision, &KeyValue)> = BTreeMap::new();
        for (position, kv) in records.iter().flat_map(Record::positions) {
            changes.history.push(history(layout, position, kv));
            newest.insert(kv.key_bytes(), (position.revision, kv));
        }
        for (key, (revision, kv)) in newest {
            if kv.is_tombstone() {
                changes.kv_unset.push(layout.kv_key.row([key.into()]));
            } else {
                changes.kv_set.push(newest_value(layout, revision, kv));
            }
        }
        let last: BTreeMap<&Bytes, Option<&Bytes>> =
            meta.iter().map(|change| (&change.key, change.value.as_ref())).collect();
        for (key, value) in last {
            match value {
                Some(value) => changes
                    .meta_set
                    .push(layout.meta.row([key.clone().into(), value.clone().into()])),
                None => changes.meta_unset.push(layout.meta_key.row([key.clone().into()])),
            }
        }
        changes
    }
}

pub(crate) fn bucket(revision: Revision) -> i64 {
    revision.0 / BUCKET_REVISIONS
}

pub(crate) fn history_key(layout: &Layout, at: Position) -> Row {
    layout.history_key.row(key_of(at))
}

fn key_of(at: Position) -> [Value; 3] {
    // Transactions are far smaller than what four bytes can count.
    let sub = i32::try_from(at.sub).unwrap_or(i32::MAX);
    [bucket(at.revision).into(), at.revision.0.into(), sub.into()]
}

pub(crate) fn history(layout: &Layout, at: Position, kv: &KeyValue) -> Row {
    let KeyValueParts { create_revision, version, lease, .. } = kv.parts();
    let [bucket, revision, sub] = key_of(at);
    layout.history.row([
        bucket,
        revision,
        sub,
        kv.key_bytes().into(),
        kv.value_bytes().into(),
        create_revision.into(),
        version.into(),
        lease.into(),
    ])
}

fn newest_value(layout: &Layout, revision: Revision, kv: &KeyValue) -> Row {
    let KeyValueParts { create_revision, version, lease, .. } = kv.parts();
    layout.kv.row([
        kv.key_bytes().into(),
        kv.value_bytes().into(),
        create_revision.into(),
        revision.0.into(),
        version.into(),
        lease.into(),
    ])
}

/// Where a change stands.
pub(crate) fn place(row: &Row) -> Result<Position, Error> {
    let sub = u32::try_from(number(row, "SUB")?).map_err(|_negative| bad(row, "SUB"))?;
    Ok(Position::new(Revision(number(row, "REV")?), sub))
}

/// A change read back, with its place. The value may have been left out of the row.
pub(crate) fn change(row: &Row) -> Result<(Position, KeyValue), Error> {
    let at = place(row)?;
    let value = row.get("V").and_then(Value::as_bytes);
    let kv = KeyValue::new(&KeyValueParts {
        key: row.get("K").and_then(Value::as_bytes).ok_or_else(|| bad(row, "K"))?,
        create_revision: number(row, "CREATE_REV")?,
        mod_revision: at.revision.0,
        version: number(row, "VERSION")?,
        value: value.map_or(&[], |value| &value[..]),
        lease: number(row, "LEASE")?,
    });
    Ok((at, kv))
}

pub(crate) fn number(row: &Row, column: &'static str) -> Result<i64, Error> {
    row.get(column).and_then(Value::as_i64).ok_or_else(|| bad(row, column))
}

fn bad(row: &Row, column: &'static str) -> Error {
    Error::BadRow { table: "HISTORY", column, found: format!("{:?}", row.get(column)) }
}

#[cfg(test)]
mod tests {
    use journal::suite::{put, record, tombstone};

    use super::*;

    #[test]
    fn a_change_is_the_same_after_the_row() {
        let layout = Layout::new();
        let at = Position::new(Revision(250), 3);
        for kv in [put(250, "k", &[0, 0x80]), put(250, "k", b""), tombstone(250, "k")] {
            let row = history(&layout, at, &kv);
            assert_eq!(row.get("BUCKET"), Some(&Value::I64(2)));
            assert_eq!(change(&row).unwrap(), (at, kv));
        }
    }

    #[test]
    fn only_the_last_change_of_a_key_reaches_kv_and_meta() {
        let records = [
            record(2, [put(2, "a", b"1"), put(2, "b", b"1")]),
            record(3, [put(3, "a", b"2"), tombstone(3, "b")]),
        ];
        let set = |key: &'static str, value: Option<&'static str>| MetaChange {
            key: Bytes::from_static(key.as_bytes()),
            value: value.map(|value| Bytes::from_static(value.as_bytes())),
        };
        let meta = [set("m", Some("1")), set("n", Some("1")), set("m", None)];
        let changes = Changes::of(&Layout::new(), &records, &meta);
        assert_eq!(changes.history.len(), 4);
        let revisions =
            |rows: &[Row]| rows.iter().map(|row| row.get("MOD_REV").cloned()).collect::<Vec<_>>();
        assert_eq!(revisions(&changes.kv_set), [Some(Value::I64(3))]);
        assert_eq!(changes.kv_unset.len(), 1);
        assert_eq!((changes.meta_set.len(), changes.meta_unset.len()), (1, 1));
    }
}
