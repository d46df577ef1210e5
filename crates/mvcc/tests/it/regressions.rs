//! Mistakes that other implementations of this API made, each with its story.

use expect_test::{Expect, expect};
use mvcc::{Keyspace, LeaseId, Position, Revision, Revoked, story};

use crate::world::World;

/// Carries out commands, one per line, and shows the answer to the last.
fn check(commands: &str, expected: &Expect) -> World {
    let mut world = World::default();
    let mut last = String::new();
    for line in commands.lines() {
        let steps = story::parse(&format!("{}\n----\n", line.trim())).expect("a line is a command");
        last = world.answer(&steps[0].command).to_string();
    }
    expected.assert_eq(&last);
    world
}

/// A client that lists at an old revision and then watches from the header's revision misses
/// everything in between if the header echoes the revision it asked for.
#[test]
fn header_echoes_the_requested_revision() {
    check(
        "put a 1
         put a 2
         get a --rev=2",
        &expect![[r#"
            count 1, revision 3
              a: 1 (create 2, mod 2, version 1)
        "#]],
    );
}

/// Kubernetes computes how many objects are left from the count, so a count that stops at the limit
/// ends a paged list early.
#[test]
fn count_stops_at_the_limit() {
    check(
        "put a 1
         put b 1
         put c 1
         get a z --limit=1",
        &expect![[r#"
            count 3, more, revision 4
              a: 1 (create 2, mod 2, version 1)
        "#]],
    );
}

/// Data that is still there by chance is not history: a read below the compacted revision is refused
/// before the sweep, after it, and for keys that never changed.
#[test]
fn reads_at_a_compacted_revision_are_served() {
    let refused = expect![[r#"
        error: etcdserver: mvcc: required revision has been compacted
    "#]];
    for compact in ["compact 4", "compact 4 --physical"] {
        for get in ["get a --rev=3", "get untouched --rev=3", "get a z --count-only --rev=1"] {
            let commands = format!("put untouched 1\nput a 1\nput a 2\n{compact}\n{get}");
            check(&commands, &refused);
        }
    }
}

/// Protobuf cannot tell an empty value from none, which tempts to use it as the mark of a delete.
#[test]
fn empty_value_is_taken_for_a_delete() {
    let mut world = check(
        "put a 1
         put a \"\"
         get a",
        &expect![[r#"
            count 1, revision 3
              a: "" (create 2, mod 3, version 2)
        "#]],
    );
    assert!(!world.memory.kept[&Position::first_of(Revision(3))].is_tombstone());
    world.keyspace.compact(Revision(3)).unwrap();
    world.sweep(usize::MAX);
    assert_eq!(world.memory.kept.len(), 1, "the compaction keeps the empty value");
}

/// After everything was deleted and compacted, the newest change that is left lies below the compacted
/// revision, or there is none at all. The store must start and go on from where it was.
#[test]
fn restart_fails_when_the_newest_key_is_below_the_compacted_revision() {
    let world = check(
        "put a 1
         put b 1
         del b
         put c 1
         del c
         put a 2
         del a
         del missing
         put a 3
         del a
         compact 10 --physical",
        &expect![[r#"
            revision 10
        "#]],
    );
    let mut restarted = Keyspace::new();
    for (position, kv) in &world.memory.kept {
        restarted.replay(*position, kv);
    }
    restarted.replay_end(Revision(10));
    restarted.compact(Revision(10)).unwrap();
    assert_eq!((restarted.revision(), restarted.compacted()), (Revision(10), Revision(10)));

    let put = etcd_api::etcdserverpb::PutRequest { key: "a".into(), ..Default::default() };
    let outcome = restarted.put(&put, &world.memory).unwrap();
    assert_eq!(outcome.written.unwrap().record.revision, Revision(11));
}

/// The same with no change left at all: the revision is known only from the journal's end.
#[test]
fn restart_forgets_the_revision_of_an_empty_store() {
    let mut restarted = Keyspace::new();
    restarted.replay_end(Revision(7));
    restarted.compact(Revision(7)).unwrap();
    let put = etcd_api::etcdserverpb::PutRequest { key: "a".into(), ..Default::default() };
    let outcome = restarted.put(&put, &World::default().memory).unwrap();
    assert_eq!(outcome.response.header.unwrap().revision, 8);
}

/// A refused or empty transaction must neither use up a revision nor give the next one twice.
#[test]
fn revisions_repeat_or_skip() {
    let world = check(
        "put a 1
         del missing
         put b --ignore-value
         put b 1 --lease=9
         get a --rev=99
         put b 1
         compact 99
         del a b
         put a 1",
        &expect![[r#"
            revision 5
        "#]],
    );
    let revisions: Vec<i64> = world.memory.kept.keys().map(|at| at.revision.0).collect();
    assert_eq!(revisions, [2, 3, 4, 5]);
}

/// Two clients that create a key if it does not exist: the second condition sees the first write.
#[test]
fn both_of_two_creates_succeed() {
    let create = "txn\n  if create a = 0\n  then put a 1\n  else get a\n----\n";
    let steps = story::parse(&format!("{create}\n{create}")).unwrap();
    let mut world = World::default();
    let answers: Vec<String> =
        steps.iter().map(|step| world.answer(&step.command).to_string()).collect();
    expect![[r#"
        succeeded, revision 2
          put: revision 2

        failed, revision 2
          get: count 1, revision 2
            a: 1 (create 2, mod 2, version 1)
    "#]]
    .assert_eq(&answers.join("\n"));
}

/// Deletes were bounded by nothing, and a record larger than the journal takes stopped the store: one
/// delete of some hundred huge keys was enough. Where they hung on a lease, its end did it again after
/// every restart.
#[test]
fn one_transaction_is_larger_than_the_journal_takes() {
    let mut world = check(
        "grant 7 100
         put a 1 --lease=7
         put b 1 --lease=7
         put c 1 --lease=7
         timetolive 7",
        &expect![[r#"
            lease 7 for 100 s, revision 4
              a
              b
              c
        "#]],
    );
    let refused = |world: &mut World, line: &str| {
        let steps = story::parse(&format!("{line}\n----\n")).expect("a line is a command");
        world.answer(&steps[0].command).to_string()
    };
    // Room for two tombstones.
    world.keyspace.bound_records(50);
    let too_large = "error: etcdserver: request is too large\n";
    assert_eq!(refused(&mut world, "del a z"), too_large);
    assert_eq!(world.keyspace.revision(), Revision(4), "nothing was changed");
    assert_eq!(world.keyspace.leases().get(LeaseId(7)).expect("it lives").keys().count(), 3);

    let first = world.keyspace.revoke(LeaseId(7), &world.memory).expect("it is never refused");
    assert_eq!(first.response, Revoked::Partly);
    assert_eq!(first.written.expect("two keys").record.changes.len(), 2);
    assert_eq!(world.keyspace.leases().get(LeaseId(7)).expect("it lives").keys().count(), 1);
    let second = world.keyspace.revoke(LeaseId(7), &world.memory).expect("it is there");
    assert_eq!(second.response, Revoked::Whole);
    assert!(world.keyspace.leases().is_empty());
}
