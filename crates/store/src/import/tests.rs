use std::{fmt::Write as _, sync::Arc};

use etcd_api::{
    authpb::{Permission, Role, User},
    mvccpb::KeyValueParts,
};
use expect_test::{Expect, expect};
use journal::{EmbeddedJournal, Journal};

use super::*;
use crate::load;

fn kv(key: &str, revisions: [i64; 3], lease: i64) -> KeyValue {
    let [create_revision, mod_revision, version] = revisions;
    KeyValue::new(&KeyValueParts {
        key: key.as_bytes(),
        create_revision,
        mod_revision,
        version,
        value: b"v",
        lease,
    })
}

fn describe(image: &Image) -> String {
    let mut text = format!("up to {}\n", image.last);
    for (position, kv) in image.records.iter().flat_map(Record::positions) {
        let key = kv.key().escape_ascii();
        writeln!(text, "  {}.{} {key}", position.revision, position.sub).unwrap();
    }
    for MetaChange { key, value } in &image.meta {
        let value = value.as_ref().map_or("gone".to_owned(), |value| format!("{value:?}"));
        writeln!(text, "  {} = {value}", key.escape_ascii()).unwrap();
    }
    text
}

fn check(revision: i64, kvs: impl IntoIterator<Item = KeyValue>, beside: Beside, expect: &Expect) {
    let mut import = Import::new(revision);
    let mut images = vec![import.begin()];
    for kv in kvs {
        images.extend(import.push(kv).expect("it comes in order"));
    }
    images.push(import.finish(beside));
    expect.assert_eq(&images.iter().map(describe).collect::<String>());
}

fn refusal(revision: i64, kvs: impl IntoIterator<Item = KeyValue>) -> String {
    let mut import = Import::new(revision);
    let refused = kvs.into_iter().find_map(|kv| import.push(kv).err());
    refused.expect("one of them is refused").to_string()
}

#[test]
fn keys_of_one_revision_share_a_record_and_the_end_is_the_stores() {
    let kvs = [kv("b", [3, 3, 1], 0), kv("a", [2, 5, 2], 0), kv("c", [5, 5, 1], 0)];
    check(
        9,
        kvs,
        Beside::default(),
        &expect![[r#"
            up to 1
              importing = b""
            up to 9
              3.0 b
              5.0 a
              5.1 c
              compacted = b"\0\0\0\0\0\0\0\t"
              importing = gone
        "#]],
    );
}

#[test]
fn an_empty_store_has_no_history_to_miss() {
    check(
        1,
        [],
        Beside::default(),
        &expect![[r#"
            up to 1
              importing = b""
            up to 1
              importing = gone
        "#]],
    );
}

#[test]
fn a_lease_that_ended_meanwhile_gets_the_shortest_time() {
    let kvs = [kv("a", [2, 2, 1], 7), kv("b", [3, 3, 1], 8)];
    let beside = Beside { leases: vec![Lease { id: 7, ttl_s: 60 }], ..Default::default() };
    check(
        3,
        kvs,
        beside,
        &expect![[r#"
            up to 1
              importing = b""
            up to 3
              2.0 a
              3.0 b
              lease/\x00\x00\x00\x00\x00\x00\x00\x07 = b"\0\0\0\0\0\0\0<"
              lease/\x00\x00\x00\x00\x00\x00\x00\x08 = b"\0\0\0\0\0\0\0\x02"
              compacted = b"\0\0\0\0\0\0\0\x03"
              importing = gone
        "#]],
    );
}

#[test]
fn images_are_cut_between_revisions_only() {
    let large = |key: &str, revision| {
        let value = vec![0; IMAGE_BYTES];
        KeyValue::new(&KeyValueParts {
            key: key.as_bytes(),
            create_revision: revision,
            mod_revision: revision,
            version: 1,
            value: &value,
            lease: 0,
        })
    };
    check(
        4,
        [large("a", 2), large("b", 2), large("a2", 3), kv("c", [4, 4, 1], 0)],
        Beside::default(),
        &expect![[r#"
            up to 1
              importing = b""
            up to 2
              2.0 a
              2.1 b
            up to 3
              3.0 a2
            up to 4
              4.0 c
              compacted = b"\0\0\0\0\0\0\0\x04"
              importing = gone
        "#]],
    );
}

#[test]
fn what_no_store_can_hold_is_refused() {
    for (kvs, expected) in [
        (
            vec![kv("a", [3, 3, 1], 0), kv("b", [2, 2, 1], 0)],
            "a key of revision 2 came after one of revision 3",
        ),
        (
            vec![kv("b", [3, 3, 1], 0), kv("a", [3, 3, 1], 0)],
            "key `a` came twice, or not in order, at revision 3",
        ),
        (vec![kv("a", [2, 10, 2], 0)], "a key has revision 10, but the store was at 9"),
        (vec![kv("a", [2, 3, 3], 0)], "key `a` cannot be: created at 2, changed at 3, version 3"),
        (
            vec![KeyValue::tombstone(b"a", 3)],
            "key `a` cannot be: created at 0, changed at 3, version 0",
        ),
    ] {
        assert_eq!(refusal(9, kvs), expected);
    }
}

#[test]
fn a_journal_is_served_once_the_last_image_is_in_it_and_not_before() {
    let folder = tempfile::tempdir().unwrap();
    let journal = EmbeddedJournal::open(folder.path(), Default::default()).unwrap();
    let journal: Arc<dyn Journal> = Arc::new(journal);
    let epoch = journal.claim().unwrap();
    let mut import = Import::new(9);
    journal.ingest(epoch, &import.begin()).unwrap();
    assert_eq!(import.push(kv("a", [4, 6, 2], 7)), Ok(None));
    let unfinished = load::open(&journal).err().expect("it cannot be served");
    assert!(matches!(unfinished, load::LoadError::Meta { source: meta::Error::Importing }));

    let epoch = journal.claim().unwrap();
    journal.ingest(epoch, &import.finish(beside())).unwrap();
    let opened = load::open(&journal).unwrap().state;
    assert_eq!(opened.keyspace.revision(), Revision(9));
    assert_eq!(opened.keyspace.compacted(), Revision(9));
    assert!(opened.auth.is_enabled());
    assert_eq!(opened.auth.revision(), 12);
    assert_eq!(opened.auth.user_roles("alice"), Ok(vec!["app".to_owned()]));
    let permissions = opened.auth.role_permissions("app").unwrap();
    assert_eq!(permissions.iter().map(|it| &it.key[..]).collect::<Vec<_>>(), [b"a", b"b"]);
}

fn beside() -> Beside {
    let permission = |key: &'static str| Permission { key: key.into(), ..Default::default() };
    let auth = Auth {
        is_enabled: true,
        revision: 12,
        users: vec![User {
            name: "alice".into(),
            roles: vec!["app".to_owned()],
            ..Default::default()
        }],
        roles: vec![Role {
            name: "app".into(),
            key_permission: vec![permission("b"), permission("a")],
        }],
    };
    Beside { leases: Vec::new(), auth }
}
