//! Reading: single changes by key at the primary, everything else from a snapshot that is begun
//! after the head was read there, and so sees all that was acknowledged before.

use std::sync::Arc;

use bytes::Bytes;
use etcd_api::mvccpb::KeyValue;
use ignite_client::{Mode, ResultSet, Row, Transaction, Value};
use journal::Head;
use mvcc::{Change, Position, Record, Revision};

use crate::{
    Error,
    density::Density,
    error::Step,
    grid::Grid,
    rows::{bucket, change, history_key, number, place},
};

/// Rows a cursor of history asks for at once: at the largest values a hundred MiB.
pub(crate) const HISTORY_PAGE_ROWS: u32 = 64;
/// The same where `--max-request-bytes` lets values be so large that those are more than one message may
/// take: of the largest that can be written, so many are not.
pub(crate) const LARGE_ROWS: u32 = 4;
const PAGE_ROWS: u32 = 1024;
/// Heads handed to the caller at once.
const HEADS_MAX: usize = 1024;

/// A snapshot, and a query that is read from it.
pub(crate) struct Cursor {
    rows: ResultSet,
    /// The snapshot lives as long as what reads from it.
    _snapshot: Arc<Transaction>,
}

/// A query of HISTORY to its end, of which nothing may be missing.
pub(crate) struct HistoryCursor {
    cursor: Cursor,
    density: Density,
    /// The newest revision in the snapshot.
    last: Revision,
}

// === impl Cursor ===

impl Cursor {
    pub(crate) async fn next(&mut self) -> Result<Option<Row>, Error> {
        self.rows.next().await.step("read a page of rows")
    }
}

// === impl HistoryCursor ===

impl HistoryCursor {
    /// The newest revision there is.
    pub(crate) fn last(&self) -> Revision {
        self.last
    }

    pub(crate) async fn next(&mut self) -> Result<Option<Row>, Error> {
        let Some(row) = self.cursor.next().await? else {
            self.density.end(self.last)?;
            return Ok(None);
        };
        self.density.see(place(&row)?)?;
        Ok(Some(row))
    }

    /// Some of the heads that are left; none at the end.
    pub(crate) async fn heads(&mut self) -> Result<Vec<Head>, Error> {
        let mut heads = Vec::new();
        while heads.len() < HEADS_MAX {
            let Some(row) = self.next().await? else { break };
            heads.push(head(&row)?);
        }
        Ok(heads)
    }
}

// === impl Grid ===

impl Grid {
    pub(crate) async fn snapshot(&self) -> Result<Arc<Transaction>, Error> {
        // What makes the snapshot new enough is the time that this answer carries.
        self.head_now().await?;
        self.client.begin(Mode::Snapshot).await.step("begin a snapshot").map(Arc::new)
    }

    async fn query(&self, statement: &str, page_rows: u32) -> Result<Cursor, Error> {
        self.query_in(&self.snapshot().await?, statement, page_rows).await
    }

    pub(crate) async fn query_in(
        &self,
        snapshot: &Arc<Transaction>,
        statement: &str,
        page_rows: u32,
    ) -> Result<Cursor, Error> {
        let rows = self.client.execute_paged(Some(snapshot), statement, &[], page_rows).await;
        let rows = rows.step("query the journal's tables")?;
        Ok(Cursor { rows, _snapshot: Arc::clone(snapshot) })
    }

    /// Columns of HISTORY from `from` on, in order.
    async fn history(
        &self,
        columns: &str,
        from: Revision,
        page_rows: u32,
    ) -> Result<HistoryCursor, Error> {
        self.history_in(&self.snapshot().await?, columns, from, page_rows).await
    }

    pub(crate) async fn history_in(
        &self,
        snapshot: &Arc<Transaction>,
        columns: &str,
        from: Revision,
        page_rows: u32,
    ) -> Result<HistoryCursor, Error> {
        // Of the same moment as the rows: what is forgotten meanwhile is not missing.
        let head = self.read_head(Some(snapshot)).await;
        let head = head.map_err(|error| error.into_error("read HEAD in a snapshot"))?;
        let statement = format!(
            "SELECT BUCKET, REV, SUB, K, {columns}, CREATE_REV, VERSION, LEASE FROM {}.HISTORY \
             WHERE BUCKET >= ? AND REV >= ? ORDER BY BUCKET, REV, SUB",
            self.schema
        );
        let arguments = [bucket(from).into(), from.0.into()];
        let rows =
            self.client.execute_paged(Some(snapshot), &statement, &arguments, page_rows).await;
        let cursor = Cursor { rows: rows.step("query HISTORY")?, _snapshot: Arc::clone(snapshot) };
        let density = Density::new(from, head.forgotten);
        Ok(HistoryCursor { cursor, density, last: head.revision })
    }

    pub(crate) async fn all_meta(&self) -> Result<Vec<(Bytes, Bytes)>, Error> {
        let statement = format!("SELECT K, V FROM {}.META ORDER BY K", self.schema);
        let mut cursor = self.query(&statement, PAGE_ROWS).await?;
        let mut entries = Vec::new();
        while let Some(row) = cursor.next().await? {
            let bytes = |column: &'static str| match row.get(column) {
                Some(Value::Bytes(bytes)) => Ok(bytes.clone()),
                found => Err(Error::BadRow { table: "META", column, found: format!("{found:?}") }),
            };
            entries.push((bytes("K")?, bytes("V")?));
        }
        Ok(entries)
    }

    pub(crate) async fn all_heads(&self) -> Result<HistoryCursor, Error> {
        self.history("OCTET_LENGTH(V) AS BYTES", Revision(0), PAGE_ROWS).await
    }

    pub(crate) async fn records(
        &self,
        from: Revision,
        bytes_max: usize,
    ) -> Result<Vec<Record>, Error> {
        match self.records_in_pages(from, bytes_max, HISTORY_PAGE_ROWS).await {
            Err(error) if error.is_too_large() => {
                self.records_in_pages(from, bytes_max, LARGE_ROWS).await
            }
            read => read,
        }
    }

    async fn records_in_pages(
        &self,
        from: Revision,
        bytes_max: usize,
        page_rows: u32,
    ) -> Result<Vec<Record>, Error> {
        let mut cursor = self.history("V", from, page_rows).await?;
        let mut gathered = Gathered { records: Vec::new(), bytes: 0, bytes_max };
        while let Some(row) = cursor.next().await? {
            let (position, kv) = change(&row)?;
            if !gathered.add(position, kv) {
                break;
            }
        }
        Ok(gathered.records)
    }

    pub(crate) async fn one(&self, at: Position) -> Result<Option<KeyValue>, Error> {
        let key = history_key(&self.layout, at);
        let row = self.history.get(None, &key).await.step("read a change")?;
        row.map(|row| change(&row).map(|(_, kv)| kv)).transpose()
    }

    /// The bytes of all keys and values that are kept.
    pub(crate) async fn bytes(&self) -> Result<u64, Error> {
        let statement = format!(
            "SELECT CAST(COALESCE(SUM(OCTET_LENGTH(K) + OCTET_LENGTH(V)), 0) AS BIGINT) AS BYTES \
             FROM {}.HISTORY",
            self.schema
        );
        let mut cursor = self.query(&statement, PAGE_ROWS).await?;
        let Some(row) = cursor.next().await? else { return Ok(0) };
        Ok(number(&row, "BYTES")?.unsigned_abs())
    }
}

/// Records so far, whole ones only.
struct Gathered {
    records: Vec<Record>,
    bytes: usize,
    bytes_max: usize,
}

// === impl Gathered ===

impl Gathered {
    /// False when the change belongs to a record for which there is no more room.
    fn add(&mut self, Position { revision, sub }: Position, kv: KeyValue) -> bool {
        let is_new = self.records.last().is_none_or(|last| last.revision != revision);
        if is_new {
            if self.bytes >= self.bytes_max && !self.records.is_empty() {
                return false;
            }
            self.records.push(Record { revision, changes: Vec::new() });
        }
        self.bytes += kv.encoded().len();
        let last = self.records.last_mut().expect("there is one since the lines above");
        last.changes.push(Change { sub, kv });
        true
    }
}

fn head(row: &Row) -> Result<Head, Error> {
    let (position, kv) = change(row)?;
    let value_bytes = number(row, "BYTES")?.unsigned_abs();
    let encoded = kv.encoded().len() as u64 + field_bytes(value_bytes);
    let encoded_len = u32::try_from(encoded).map_err(|_above| Error::BadRow {
        table: "HISTORY",
        column: "V",
        found: format!("{value_bytes} bytes"),
    })?;
    Ok(Head { position, kv, encoded_len })
}

/// What a value takes in an encoded key-value: a tag, its length as a varint, and itself. An empty
/// one is left out.
fn field_bytes(value_bytes: u64) -> u64 {
    if value_bytes == 0 {
        return 0;
    }
    let bits = u64::from(u64::BITS - value_bytes.leading_zeros());
    1 + bits.div_ceil(7) + value_bytes
}

#[cfg(test)]
mod tests {
    use journal::suite::put;

    use super::*;

    #[test]
    fn the_encoded_length_is_told_without_the_value() {
        for bytes in [0, 1, 127, 128, 16_383, 16_384, 3_000_000] {
            let kv = put(9, "k", &vec![1; bytes]);
            let rest = kv.without_value().encoded().len() as u64;
            assert_eq!(rest + field_bytes(bytes as u64), kv.encoded().len() as u64, "{bytes}");
        }
    }

    #[test]
    fn records_are_gathered_whole_and_at_least_one() {
        let check = |bytes_max| {
            let mut gathered = Gathered { records: Vec::new(), bytes: 0, bytes_max };
            for (revision, sub) in [(2, 0), (2, 1), (3, 0), (4, 0)] {
                let at = Position::new(Revision(revision), sub);
                if !gathered.add(at, put(revision, "k", b"v")) {
                    break;
                }
            }
            gathered.records.iter().map(|record| record.changes.len()).collect::<Vec<_>>()
        };
        let one = put(2, "k", b"v").encoded().len();
        assert_eq!(check(0), [2]);
        assert_eq!(check(2 * one), [2]);
        assert_eq!(check(2 * one + 1), [2, 1]);
        assert_eq!(check(usize::MAX), [2, 1, 1]);
    }
}
