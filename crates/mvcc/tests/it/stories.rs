//! Stories: `testdata/NN-concept.txt`, where NN is the number that the store's specification gives
//! the behaviour. Each begins with an empty keyspace. `UPDATE_EXPECT=1` rewrites the answers; a
//! change in them is reviewed like code, and held against a real etcd by `e2e`.

use std::{collections::BTreeSet, fs, path::Path};

use expect_test::{ExpectFile, expect_file};
use mvcc::story;

use crate::world::World;

/// Replays a story on an empty keyspace.
fn check(story: &ExpectFile) {
    let steps = story::parse(&story.data()).expect("the file is a story");
    let mut world = World::default();
    let answers: Vec<_> = steps.iter().map(|step| world.answer(&step.command)).collect();
    story.assert_eq(&story::render(&steps, &answers));
}

/// A test for each story, and the list of them.
macro_rules! stories {
    ($($name:ident => $file:literal,)+) => {
        const STORIES: &[&str] = &[$($file,)+];

        $(#[test]
        fn $name() {
            check(&expect_file![concat!("../../testdata/", $file)]);
        })+
    };
}

stories! {
    s01_revisions => "01-revisions.txt",
    s02_no_effect_no_revision => "02-no-effect-no-revision.txt",
    s03_header_of_a_range => "03-header-of-a-range.txt",
    s04_nested_headers => "04-nested-headers.txt",
    s05_range_ends => "05-range-ends.txt",
    s06_sort_and_more => "06-sort-and-more.txt",
    s07_count => "07-count.txt",
    s08_filters_and_keys_only => "08-filters-and-keys-only.txt",
    s09_bad_revisions => "09-bad-revisions.txt",
    s12_versions_and_generations => "12-versions-and-generations.txt",
    s13_ignore_value_and_lease => "13-ignore-value-and-lease.txt",
    s14_attaching_leases => "14-attaching-leases.txt",
    s15_delete_range => "15-delete-range.txt",
    s16_too_many_operations => "16-too-many-operations.txt",
    s17_duplicate_keys => "17-duplicate-keys.txt",
    s18_compares => "18-compares.txt",
    s19_what_a_transaction_sees => "19-what-a-transaction-sees.txt",
    s20_bad_revision_in_a_transaction => "20-bad-revision-in-a-transaction.txt",
    s21_empty_operation => "21-empty-operation.txt",
    s22_compact_bounds => "22-compact-bounds.txt",
    s23_what_compaction_keeps => "23-what-compaction-keeps.txt",
    s24_compaction_of_everything => "24-compaction-of-everything.txt",
    s44_hash => "44-hash.txt",
}

#[test]
fn every_story_is_replayed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let files: BTreeSet<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(files, STORIES.iter().map(|&file| file.to_owned()).collect());
}
