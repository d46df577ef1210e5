//! Folders that must not be opened, and what is said about them.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use expect_test::{Expect, expect};
use journal::{
    EmbeddedJournal, Journal,
    embedded::{self, Options},
};
use tempfile::TempDir;

fn some_journal() -> TempDir {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let journal = EmbeddedJournal::open(dir.path(), Options::default()).expect("open");
    journal.claim().expect("claim");
    dir
}

fn check(dir: &TempDir, expect: &Expect) {
    let error = EmbeddedJournal::open(dir.path(), Options::default()).expect_err("refused");
    expect.assert_eq(&error.to_string().replace(&dir.path().display().to_string(), "DIR"));
}

#[test]
fn a_second_opening_is_refused() {
    let dir = some_journal();
    let _first = EmbeddedJournal::open(dir.path(), Options::default()).expect("open");
    check(&dir, &expect!["DIR is in use by another process"]);
}

#[test]
fn a_newer_format_is_refused_with_both_numbers() {
    let dir = some_journal();
    let path = dir.path().join("FORMAT");
    let text = fs::read_to_string(&path).expect("read").replace("format 1", "format 7");
    fs::write(&path, text).expect("write");
    check(&dir, &expect!["DIR has format 7, this program reads up to 1"]);
}

#[test]
fn a_damaged_format_is_refused() {
    let dir = some_journal();
    fs::write(dir.path().join("FORMAT"), "nonsense").expect("write");
    check(
        &dir,
        &expect!["DIR/FORMAT is damaged at byte 0: it does not name a format and an identity"],
    );
}

#[test]
fn a_log_without_its_format_is_not_taken_for_a_new_one() {
    let dir = some_journal();
    fs::remove_file(dir.path().join("FORMAT")).expect("remove");
    check(
        &dir,
        &expect![
            "DIR/FORMAT is damaged at byte 0: the file is missing, but DIR/log/0000000000000001-00000001.seg is there"
        ],
    );
}

/// Whoever mistyped a folder was told that its file `FORMAT` is damaged, and to restore a snapshot.
#[test]
fn a_folder_of_something_else_was_called_damaged() {
    let inspected = |dir: &TempDir| {
        let error = embedded::inspect(dir.path()).expect_err("there is nothing to inspect");
        error.to_string().replace(&dir.path().display().to_string(), "DIR")
    };
    let other = tempfile::tempdir().expect("a temporary folder");
    assert_eq!(inspected(&other), "DIR holds no journal");
    let lost = some_journal();
    fs::remove_file(lost.path().join("FORMAT")).expect("remove");
    assert!(inspected(&lost).starts_with("DIR/FORMAT is damaged"), "{}", inspected(&lost));
}

#[test]
fn a_segment_of_another_journal_is_refused() {
    let (dir, other) = (some_journal(), some_journal());
    let name = "log/0000000000000001-00000001.seg";
    fs::copy(other.path().join(name), dir.path().join(name)).expect("copy");
    check(
        &dir,
        &expect![
            "DIR/log/0000000000000001-00000001.seg is damaged at byte 0: the segment belongs to another journal"
        ],
    );
}

#[test]
fn free_space_is_known() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let journal = EmbeddedJournal::open(dir.path(), Options::default()).expect("open");
    assert!(journal.available_bytes().expect("available bytes") > 0);
}

/// All of it could be read by every user of the machine: Kubernetes' secrets, and hashes of passwords.
#[test]
fn what_is_kept_could_be_read_by_everybody() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let root = dir.path().join("store");
    let journal = EmbeddedJournal::open(&root, Options::default()).expect("open");
    journal.claim().expect("claim");
    check_private(&root);
}

fn check_private(path: &Path) {
    let metadata = fs::metadata(path).expect("it is there");
    let others = metadata.permissions().mode() & 0o077;
    assert_eq!(others, 0, "{}", path.display());
    if metadata.is_dir() {
        for entry in fs::read_dir(path).expect("list") {
            check_private(&entry.expect("list").path());
        }
    }
}
