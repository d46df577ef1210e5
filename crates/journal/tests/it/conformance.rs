//! The embedded journal passes the suite, with segments so small that it rotates all the time.

use journal::{
    EmbeddedJournal,
    embedded::{Options, SEGMENT_BYTES_MIN},
    suite::Subject,
};
use tempfile::TempDir;

struct Embedded {
    dir: TempDir,
}

// === impl Embedded ===

impl Embedded {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("a temporary folder") }
    }
}

impl Subject for Embedded {
    type Journal = EmbeddedJournal;

    fn open(&mut self) -> EmbeddedJournal {
        let options = Options { segment_bytes: SEGMENT_BYTES_MIN, ..Options::default() };
        EmbeddedJournal::open(self.dir.path(), options).expect("open")
    }

    fn kill(&mut self, journal: EmbeddedJournal) {
        // Dropping closes the files and does nothing else: no flush, no farewell.
        drop(journal);
    }
}

journal::conformance!(Embedded::new());
