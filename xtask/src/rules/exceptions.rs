//! What may stand out of line, and why: the one list of exceptions to the rules.

use super::{Finding, storage};

pub(super) struct Exception {
    pub(super) rule: &'static str,
    /// A file, or a folder ending with `/`.
    pub(super) path: &'static str,
    pub(super) reason: &'static str,
}

pub(super) const EXCEPTIONS: &[Exception] = &[
    Exception {
        rule: storage::RULE,
        path: "crates/store/src/http/tls/self_signed.rs",
        reason: "a certificate made on request must be the same after a restart; no cluster state",
    },
    Exception {
        rule: storage::RULE,
        path: "crates/windlass/src/commands/autoscaler/recorder.rs",
        reason: "the user names the file that iterations are recorded in; nobody acts on it",
    },
    Exception {
        rule: storage::RULE,
        path: "crates/windlass/src/commands/ca.rs",
        reason: "certificates are files, in the folder that the user names; no cluster state",
    },
    Exception {
        rule: storage::RULE,
        path: "crates/windlass/src/commands/snapshot.rs",
        reason: "the user names the file a snapshot is saved in; no store reads it by itself",
    },
    Exception {
        rule: storage::RULE,
        path: "crates/windlass/src/logging.rs",
        reason: "the user names files for the log",
    },
];

// === impl Exception ===

impl Exception {
    pub(super) fn covers(&self, path: &str) -> bool {
        path == self.path || (self.path.ends_with('/') && path.starts_with(self.path))
    }

    pub(super) fn as_stale(&self) -> Finding {
        let advice = format!("excepts nothing (\"{}\"); delete the exception", self.reason);
        Finding::new(self.path, 1, self.rule, advice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_covers_what_lies_below_and_a_file_only_itself() {
        let exception = |path| Exception { rule: storage::RULE, path, reason: "" };
        assert!(exception("crates/a/src/").covers("crates/a/src/b/c.rs"));
        assert!(exception("crates/a/src/b.rs").covers("crates/a/src/b.rs"));
        assert!(!exception("crates/a/src/b").covers("crates/a/src/b.rs"));
        assert!(!exception("crates/a/src/").covers("crates/ab/src/c.rs"));
    }
}
