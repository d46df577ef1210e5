//! Any bytes as the segments of a data folder, their checksums put right. The folder is refused, or
//! it opens, everything in it can be read or is reported as damaged, and it opens again as it was.
//! What verification calls sound, opening never refuses.
//!
//! The input is a row of segments, each after its length in two bytes.
#![no_main]

mod scratch;

use std::path::Path;

use bytes::Bytes;
use journal::embedded::{self, EmbeddedJournal, Options, fuzz};
use journal::{Error, Head, Journal};
use libfuzzer_sys::fuzz_target;
use mvcc::{Record, Revision};

/// Enough for a rewritten segment, a sealed one and the newest.
const SEGMENTS_MAX: usize = 3;
const READ_BYTES: usize = 1 << 20;

/// All that a journal gives out; `None` where it reports damage.
#[derive(Debug, PartialEq)]
struct Seen {
    durable: Revision,
    meta: Vec<(Bytes, Bytes)>,
    heads: Option<Vec<Head>>,
    records: Option<Vec<Record>>,
}

fuzz_target!(|input: &[u8]| {
    let scratch = scratch::folder();
    fuzz::lay_out(scratch.path(), &segments(input)).expect("the scratch folder can be written");
    let verified = embedded::verify(scratch.path());
    match (open(scratch.path()), verified) {
        (Err(_), Err(_)) => {}
        (Err(refused), Ok(report)) => panic!("{report:?} is sound, but refused: {refused:?}"),
        (Ok(journal), verified) => {
            let seen = Seen::of(&journal);
            if verified.is_ok() {
                assert!(seen.is_whole(), "sound, but not all of it can be read: {seen:?}");
            }
            drop(journal);
            let again = open(scratch.path()).expect("what was recovered opens again");
            assert_eq!(Seen::of(&again), seen);
        }
    }
});

fn segments(mut input: &[u8]) -> Vec<&[u8]> {
    let mut segments = Vec::new();
    while segments.len() < SEGMENTS_MAX
        && let Some((len, rest)) = input.split_first_chunk()
    {
        let len = usize::from(u16::from_le_bytes(*len)).min(rest.len());
        let (segment, rest) = rest.split_at(len);
        segments.push(segment);
        input = rest;
    }
    segments
}

fn open(dir: &Path) -> Result<EmbeddedJournal, Error> {
    EmbeddedJournal::open(dir, Options::default())
}

// === impl Seen ===

impl Seen {
    fn of(journal: &EmbeddedJournal) -> Self {
        let mut heads = Vec::new();
        let visited = unless_damaged(journal.heads(&mut |head| heads.push(head)));
        Self {
            durable: journal.durable().expect("it is known since the journal was opened"),
            meta: journal.meta().expect("it is known since the journal was opened"),
            heads: visited.map(|()| heads),
            records: unless_damaged(journal.records(Revision::INITIAL, READ_BYTES)),
        }
    }

    fn is_whole(&self) -> bool {
        self.heads.is_some() && self.records.is_some()
    }
}

fn unless_damaged<T>(read: Result<T, Error>) -> Option<T> {
    match read {
        Ok(read) => Some(read),
        Err(Error::Corrupt { .. }) => None,
        Err(error) => panic!("no damage looks like this: {error:?}"),
    }
}
