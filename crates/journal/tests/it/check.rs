//! What the tests of crashes, faults and damage have in common: opening a folder, writing one
//! more batch, and comparing all that a journal holds with what was expected.

use std::{collections::BTreeMap, path::Path};

use etcd_api::mvccpb::KeyValue;
use journal::{
    Batch, BatchId, EmbeddedJournal, Journal,
    embedded::{Options, SEGMENT_BYTES_MIN},
    suite::{put, record},
};
use mvcc::{Position, Record, Revision};

use crate::story::Expected;

/// `place` names the case in every message.
pub(crate) fn compare(journal: &EmbeddedJournal, expected: &Expected, place: &str) {
    let records = journal.records(Revision(0), usize::MAX).expect("records");
    let found: BTreeMap<Position, &KeyValue> = records.iter().flat_map(Record::positions).collect();
    for (position, kv) in &expected.changes {
        match found.get(position) {
            Some(found) => assert_eq!(*found, kv, "{place}: {position}"),
            None => assert!(expected.forgotten.contains(position), "{place}: {position} is lost"),
        }
    }
    let invented = found.keys().find(|position| !expected.changes.contains_key(position));
    assert_eq!(invented, None, "{place}: invented");
    let mut heads = Vec::new();
    journal.heads(&mut |head| heads.push(head.position)).expect("heads");
    assert_eq!(heads, found.keys().copied().collect::<Vec<_>>(), "{place}: heads");
}

pub(crate) fn append_one(
    journal: &EmbeddedJournal,
    id: BatchId,
    expected: &mut Expected,
    place: &str,
) {
    let at = expected.durable.next();
    let kv = put(at.0, "after the crash", &[9; 700]);
    let batch = Batch { id, records: vec![record(at.0, [kv.clone()])], meta: Vec::new() };
    journal.append(id.epoch, &batch).unwrap_or_else(|error| panic!("{place}: {error}"));
    expected.durable = at;
    expected.changes.insert(Position::first_of(at), kv);
}

pub(crate) fn open(folder: &Path, place: &str) -> EmbeddedJournal {
    let options = Options { segment_bytes: SEGMENT_BYTES_MIN, ..Options::default() };
    EmbeddedJournal::open(folder, options).unwrap_or_else(|error| panic!("{place}: {error}"))
}
