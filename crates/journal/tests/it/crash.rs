//! The journal survives a power cut at any moment.
//!
//! Stories are recorded and cut at many places; the folder is built as the cut could have left it,
//! opened, and compared with what was acknowledged. Covered: writes lost, kept, torn at a byte,
//! torn by sectors, reordered; names of files lost, kept, or in any subset; during appends,
//! rotation, recycling, rewriting, condensing, indexing, cutting, restarts, loading an image, and the
//! creation of the journal itself. [`image`](crate::image) says what is not.

use std::{collections::BTreeMap, path::Path};

use bytes::Bytes;
use journal::{BatchId, EmbeddedJournal, Epoch, Journal, suite::Dice};

use crate::{
    check::{append_one, compare, open},
    disk::Op,
    image::{Loss, Medium},
    story::{Expected, Story, scratch},
};

/// Cuts of one story in a usual run; `WINDLASS_TEST_FULL=1` makes every cut with every loss.
const CUTS: usize = 60;
const STEPS: usize = 200;

#[test]
fn appends_survive_any_cut() {
    for seed in 0..4 {
        check(seed, &Story::of_appends(seed, STEPS));
    }
}

#[test]
fn images_survive_any_cut() {
    for seed in 0..2 {
        check(seed, &Story::of_an_image(seed, 12, STEPS / 2));
    }
}

#[test]
fn creation_survives_any_cut() {
    let story = Story::of_appends(0, 0);
    for cut in 0..=story.created_at + 1 {
        for loss in Loss::ALL {
            check_cut(0, &story, cut, loss);
        }
    }
}

/// The other tests are worth nothing if their stories leave out what can go wrong.
#[test]
fn stories_contain_every_kind_of_step() {
    let stories = (0..4).map(|seed| Story::of_appends(seed, STEPS));
    let ops: Vec<Op> = stories.flat_map(|story| story.ops).collect();
    let renames = |from: &str, to: &str| {
        let has = |path: &Path, extension: &str| path.extension().is_some_and(|it| it == extension);
        let is =
            |op: &&Op| matches!(op, Op::Rename { from: f, to: t } if has(f, from) && has(t, to));
        ops.iter().filter(is).count()
    };
    let segments = "a segment created, or rewritten";
    for (from, to, what) in [
        ("new", "seg", segments),
        ("new", "spare", "a spare zeroed"),
        ("spare", "seg", "a spare used"),
        ("seg", "spare", "a segment recycled"),
        ("new", "idx", "a segment indexed"),
    ] {
        assert!(renames(from, to) >= 5, "{what}: only {} times", renames(from, to));
    }
    assert!(ops.iter().any(|op| matches!(op, Op::Remove { .. })), "a file removed");
}

fn check(seed: u64, story: &Story) {
    if std::env::var_os("WINDLASS_TEST_FULL").is_some() {
        for cut in story.cuts() {
            Loss::ALL.iter().for_each(|loss| check_cut(seed, story, cut, *loss));
        }
        return;
    }
    let mut dice = Dice::new(seed);
    for _ in 0..CUTS {
        let cut = dice.below(story.ops.len() + 1);
        let loss = Loss::ALL[dice.below(Loss::ALL.len())];
        check_cut(seed, story, cut, loss);
    }
}

fn check_cut(seed: u64, story: &Story, cut: usize, loss: Loss) {
    let mut medium = Medium::default();
    story.ops[..cut].iter().for_each(|op| medium.apply(op));
    let folder = tempfile::tempdir_in(scratch()).expect("a temporary folder");
    let mut dice = Dice::new(seed ^ cut as u64);
    medium.crash(loss, &mut dice, story.dir.path(), folder.path());
    let place = format!("seed {seed}, cut {cut} of {}, {loss:?}", story.ops.len());
    let (sure, with_it) = story.expected(cut);
    let journal = open(folder.path(), &place);
    let expected = decide(&journal, sure, with_it, &place);
    compare(&journal, &expected, &place);
    go_on(journal, folder.path(), expected, &place);
}

/// Which of the two states it is; it must be one of them.
fn decide(
    journal: &EmbeddedJournal,
    sure: Expected,
    with_it: Option<Expected>,
    place: &str,
) -> Expected {
    let meta: BTreeMap<Bytes, Bytes> = journal.meta().expect("meta").into_iter().collect();
    let durable = journal.durable().expect("durable");
    let is = |state: &Expected| state.durable == durable && state.meta == meta;
    match with_it {
        Some(with_it) if is(&with_it) => with_it,
        _ if is(&sure) => sure,
        _ => panic!("{place}: neither before nor after: at {durable}, {sure:?}"),
    }
}

/// The journal can be used, and what it then takes in survives the next start.
fn go_on(journal: EmbeddedJournal, folder: &Path, mut expected: Expected, place: &str) {
    let epoch = journal.claim().unwrap_or_else(|error| panic!("{place}: {error}"));
    assert!(epoch > expected.epoch, "{place}: {epoch:?} was given out before");
    for number in 1..=30 {
        append_one(&journal, BatchId { epoch, number }, &mut expected, place);
        journal.maintain().expect("maintain");
    }
    compare(&journal, &expected, place);
    drop(journal);
    let journal = open(folder, place);
    assert_eq!(journal.durable().expect("durable"), expected.durable, "{place}: after going on");
    compare(&journal, &expected, place);
    assert!(journal.claim().expect("claim") > Epoch(epoch.0), "{place}");
}
