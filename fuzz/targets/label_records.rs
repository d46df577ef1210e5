//! Any ConfigMap as the record of a node's labels: it is refused, or it is the same record after it
//! was written, and its flat keys then agree with its snapshot.
#![no_main]

mod config_map;

use labels::core::record::Record;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(record) = Record::decode(&config_map::parse(text)) else { return };
    let again = Record::decode(&record.encode()).expect("what was written can be read");
    assert_eq!(again.snapshot, record.snapshot);
    assert_eq!(again.ledger, record.ledger);
    assert_eq!(again.past, record.past);
    assert!(again.drift.is_empty(), "written anew, and still differing in {:?}", again.drift);

    let marked = Record::decode(&record.encode_ledger()).expect("bookkeeping spoils nothing");
    assert_eq!((marked.snapshot, marked.ledger), (record.snapshot, record.ledger));
});
