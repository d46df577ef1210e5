use expect_test::expect;

use super::*;

fn live() -> LiveNode {
    LiveNode {
        name: "worker-7".to_owned(),
        uid: Uid("6f1c".to_owned()),
        rv: "4122".parse().unwrap(),
        created: "2026-03-01T08:00:00Z".parse().unwrap(),
        labels: [("team/tier".to_owned(), "gold".to_owned())].into(),
        marker: None,
        is_terminating: false,
    }
}

#[test]
fn a_checkpoint_is_written_as_documented() {
    let document = Checkpoint::of(&live()).encode().unwrap();
    expect![[r#"
        Document {
            name: "8aca0dd300d2436b96f9d412b7b1b00d8e2454988fc9ada5607c2436a5bfbfa1",
            uid: None,
            rv: None,
            labels: {
                "app.kubernetes.io/managed-by": "windlass-labels",
            },
            annotations: {
                "labels.windlass.dev/digest": "fefc062fc95ee3c31fca9826384d5b6546db49fa677744bce92ebf4dc159f3f4",
                "labels.windlass.dev/node": "worker-7",
                "labels.windlass.dev/node-created": "2026-03-01T08:00:00Z",
                "labels.windlass.dev/node-uid": "6f1c",
                "labels.windlass.dev/rv": "4122",
            },
            data: {
                "snapshot.json": "{\"v\":1,\"node\":\"worker-7\",\"uid\":\"6f1c\",\"rv\":\"4122\",\"marker\":null,\"labels\":{\"team/tier\":\"gold\"}}",
            },
            is_immutable: false,
        }
    "#]].assert_debug_eq(&document);
    assert_eq!(Checkpoint::decode(&document).unwrap(), Checkpoint::of(&live()));
    let without_data = Document { data: std::collections::BTreeMap::new(), ..document };
    let meta = CheckpointMeta::decode(&without_data).unwrap();
    assert_eq!((meta.uid, meta.rv, meta.created), (live().uid, live().rv, Some(live().created)));
}

#[test]
fn the_digest_tells_labels_and_marker() {
    let of = |live: &LiveNode| digest(&Checkpoint::of(live).snapshot);
    let same = LiveNode { rv: "9999".parse().unwrap(), ..live() };
    assert_eq!(of(&live()), of(&same));
    let mut edited = live();
    edited.labels.insert("team/tier".to_owned(), "silver".to_owned());
    assert_ne!(of(&live()), of(&edited));
    let marked = LiveNode { marker: Some(Marker("7".to_owned())), ..live() };
    assert_ne!(of(&live()), of(&marked));
}

#[test]
fn what_is_no_checkpoint_says_why() {
    let broken = |change: fn(&mut Document)| {
        let mut document = Checkpoint::of(&live()).encode().unwrap();
        change(&mut document);
        Checkpoint::decode(&document).unwrap_err().to_string()
    };
    let messages = [
        broken(|document| drop(document.annotations.remove(DIGEST))),
        broken(|document| document.name = "resume".to_owned()),
        broken(|document| drop(document.annotations.insert(RV.to_owned(), "x".to_owned()))),
        broken(|document| {
            drop(document.annotations.insert(NODE_CREATED.to_owned(), "x".to_owned()))
        }),
        broken(|document| drop(document.annotations.insert(NODE_UID.to_owned(), "x".to_owned()))),
        broken(|document| document.data.clear()),
        broken(|document| drop(document.data.insert(SNAPSHOT.to_owned(), "{".to_owned()))),
    ];
    expect![[r#"
        the annotation labels.windlass.dev/digest is missing
        the name is not the hash of "worker-7"
        the annotation labels.windlass.dev/rv is no resource version
        the annotation labels.windlass.dev/node-created is no time
        `snapshot.json` is of another incarnation than the annotations
        `snapshot.json` is missing
        `snapshot.json` cannot be read"#]]
    .assert_eq(&messages.join("\n"));
}
