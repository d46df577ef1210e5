//! Any bytes as a snapshot. They are refused, or they are restored into an empty journal that is
//! sound and stands where the snapshot says.
//!
//! The input is tried as it is, and once more as the pieces of a snapshot whose beginning and digest
//! are right, which no fuzzer would guess.
#![no_main]

mod scratch;

use std::path::Path;

use journal::Journal;
use journal::embedded::{self, EmbeddedJournal, Options, SEGMENT_BYTES_MIN};
use libfuzzer_sys::fuzz_target;
use sha2::{Digest, Sha256};
use store::snapshot::{self, ReadError};

const MAGIC: &[u8] = b"windlass snapshot\n\0\x01";
const END_OF_PIECES: &[u8] = &[0; 4];
const BLOCK_BYTES: usize = 512;

fuzz_target!(|input: &[u8]| {
    drop(snapshot::verify(input));
    let sealed = seal(input);
    match snapshot::verify(&*sealed) {
        Ok(summary) => check_restore(&sealed, summary.revision),
        Err(error @ (ReadError::NotASnapshot | ReadError::Format { .. })) => {
            panic!("the beginning is right: {error:?}");
        }
        Err(_) => {}
    }
});

/// Puts the input between a right beginning and a right end.
fn seal(pieces: &[u8]) -> Vec<u8> {
    let mut sealed = [MAGIC, pieces, END_OF_PIECES].concat();
    sealed.resize(sealed.len().next_multiple_of(BLOCK_BYTES), 0);
    let digest = Sha256::digest(&sealed);
    sealed.extend_from_slice(&digest);
    sealed
}

fn check_restore(sealed: &[u8], revision: i64) {
    let scratch = scratch::folder();
    let journal = open(scratch.path());
    let epoch = journal.claim().expect("an empty journal can be claimed");
    snapshot::restore(sealed, &journal, epoch).expect("what was verified can be restored");
    drop(journal);
    embedded::verify(scratch.path()).expect("what was restored is sound");
    // A snapshot without pieces says nothing, not even a revision.
    let expected = revision.max(1);
    assert_eq!(open(scratch.path()).durable().expect("it is open").0, expected);
}

fn open(dir: &Path) -> EmbeddedJournal {
    let options = Options { segment_bytes: SEGMENT_BYTES_MIN, ..Options::default() };
    EmbeddedJournal::open(dir, options).expect("a folder of our own opens")
}
