//! Absence 1: only `journal*` crates keep cluster state on a disk or touch a storage engine. `sandbox`
//! writes files too, its logs, results and scratch, and keeps no cluster state in them.

use super::Finding;
use super::source::{Ban, Scope, SourceFile};

pub(super) const RULE: &str = "storage";

const ENGINE: &str = "storage engines live in the `journal*` crates; hand the data to a journal";
const FILE: &str = "only `journal*` crates write files; hand the data to a journal";

/// Writes what a task leaves on its machine: output, results, scratch.
const SANDBOX: &str = "sandbox";

const ENGINES: Ban = Ban {
    rule: RULE,
    scope: Scope::Product,
    names: &[
        ("fjall", ENGINE),
        ("redb", ENGINE),
        ("rocksdb", ENGINE),
        ("rusqlite", ENGINE),
        ("sled", ENGINE),
    ],
};

const FILES: Ban = Ban {
    rule: RULE,
    scope: Scope::Product,
    names: &[
        ("File::create", FILE),
        ("File::create_new", FILE),
        ("OpenOptions", FILE),
        ("fs::write", FILE),
        ("fs::rename", FILE),
        ("fs::copy", FILE),
        ("fs::create_dir", FILE),
        ("fs::create_dir_all", FILE),
    ],
};

pub(super) fn check(file: &SourceFile) -> Vec<Finding> {
    if file.crate_name().starts_with("journal") || file.is_tool() {
        return Vec::new();
    }
    let mut findings = ENGINES.check(file);
    if file.crate_name() != SANDBOX {
        findings.extend(FILES.check(file));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        check(&SourceFile::new(path, text)).len()
    }

    #[test]
    fn the_store_neither_writes_files_nor_names_an_engine() {
        assert_eq!(count("crates/store/src/a.rs", "std::fs::write(path, bytes)?;"), 1);
        assert_eq!(count("crates/store/src/a.rs", "use std::fs::{File, OpenOptions};"), 1);
        assert_eq!(count("crates/mvcc/src/a.rs", "fjall::Keyspace::open()"), 1);
        assert_eq!(count("crates/store/src/a.rs", "std::fs::read(path)?;"), 0);
    }

    #[test]
    fn the_sandbox_writes_files_and_names_no_engine() {
        assert_eq!(count("crates/sandbox/src/a.rs", "std::fs::write(path, bytes)?;"), 0);
        assert_eq!(count("crates/sandbox/src/a.rs", "use redb::Database;"), 1);
    }

    #[test]
    fn journals_tools_and_tests_may() {
        assert_eq!(count("crates/journal/src/a.rs", "File::create(path)?;"), 0);
        assert_eq!(count("crates/journal-raft/src/a.rs", "use redb::Database;"), 0);
        assert_eq!(count("crates/e2e/src/a.rs", "fs::write(path, bytes)?;"), 0);
        assert_eq!(count("crates/store/tests/it/a.rs", "fs::write(path, bytes)?;"), 0);
    }
}
