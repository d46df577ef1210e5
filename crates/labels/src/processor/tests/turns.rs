//! One turn each: the conversation with the server.

use std::time::Duration;

use expect_test::{Expect, expect};
use serde_json::json;

use super::{server::Fault, *};
use crate::processor::{hand::Cover, round::Round};

const HOLDER: &str = "this";

/// A lapsed lock is waited for in turns of half a second at least.
const TURNS_MAX: usize = 25;

/// One turn with everything that is queued.
async fn check(server: &Server, end: TurnEnd, expected: Expect) {
    let scene = Scene::new(server, HOLDER);
    scene.list();
    assert_eq!(scene.turn().await, end);
    expected.assert_eq(&scene.conversation().await);
}

/// A node that comes back, and everything that is queued for it.
fn returning() -> Server {
    world(Some(("u2", "x=1")), &[deleted("u1", "10", None, "tier=gold"), added("u2", "20")])
}

fn conflict() -> Fault {
    Fault::Refuse(json!({"code": 409, "reason": "Conflict"}))
}

#[tokio::test(start_paused = true)]
async fn first_delete_creates_record_and_then_looks_whether_the_node_is_back() {
    let server = world(None, &[deleted("u1", "10", None, "tier=gold")]);
    let conversation = expect![[r#"
        POST lock a 201
        GET node a 404
        GET record a 404
        POST record a 201
        GET node a 404
        GET record a 200
        DELETE transaction 10 200
        DELETE lock a 200
        POST event LabelsStored 201
    "#]];
    check(&server, TurnEnd::Done, conversation).await;
    assert_eq!(server.get("record a").unwrap()["data"]["labels_restored"], "10");
}

#[tokio::test(start_paused = true)]
async fn added_restores_in_one_patch() {
    let server = returning();
    check(
        &server,
        TurnEnd::Done,
        expect![[r#"
            POST lock a 201
            GET node a 200
            GET record a 404
            POST record a 201
            PATCH node a 200
            PUT record a 200
            DELETE transaction 10 200
            DELETE transaction 20 200
            DELETE lock a 200
            POST event LabelsStored 201
            POST event LabelsRestored 201
        "#]],
    )
    .await;
    let labels = &server.get("node a").unwrap()["metadata"]["labels"];
    assert_eq!(*labels, json!({"tier": "gold", "labels_restored": "10"}));
}

#[tokio::test(start_paused = true)]
async fn smallest_rv_first_and_all_outlive_the_settle() {
    let server = world(
        Some(("u3", "")),
        &[
            added("u2", "9"),
            deleted("u1", "8", None, "tier=gold"),
            deleted("u2", "10", Some("8"), "tier=silver"),
        ],
    );
    check(
        &server,
        TurnEnd::Done,
        expect![[r#"
            POST lock a 201
            GET node a 200
            GET record a 404
            POST record a 201
            PUT record a 200
            GET node a 200
            GET record a 200
            PATCH node a 200
            PUT record a 200
            DELETE transaction 8 200
            DELETE transaction 9 200
            DELETE transaction 10 200
            DELETE lock a 200
            POST event LabelsStored 201
            POST event LabelsStored 201
            POST event LabelsRestored 201
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_read_and_decided_anew() {
    let server = returning();
    server.fail("PATCH node a", conflict());
    check(
        &server,
        TurnEnd::Done,
        expect![[r#"
        POST lock a 201
        GET node a 200
        GET record a 404
        POST record a 201
        PATCH node a 409
        GET node a 200
        GET record a 200
        PATCH node a 200
        PUT record a 200
        DELETE transaction 10 200
        DELETE transaction 20 200
        DELETE lock a 200
        POST event LabelsStored 201
        POST event LabelsRestored 201
    "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_changes_all_the_time_is_left_for_later() {
    let server = returning();
    for _ in 0..6 {
        server.fail("PATCH node a", conflict());
    }
    let scene = Scene::new(&server, HOLDER);
    scene.list();
    assert_eq!(scene.turn().await, TurnEnd::Refused);
    let conversation = scene.conversation().await;
    assert_eq!(conversation.matches("PATCH node a 409").count(), 6);
    assert!(
        conversation.ends_with(
            "DELETE lock a 200\nPOST event LabelsStored 201\nPOST event RestoreConflict 201\n"
        ),
        "{conversation}"
    );
    assert!(server.get("transaction 20").is_some());
}

#[tokio::test(start_paused = true)]
async fn another_incarnation_is_not_an_invalid_patch() {
    let server = returning();
    let details = json!({"causes": [{"field": "metadata.uid"}]});
    let refusal = json!({"code": 422, "reason": "Invalid", "details": details});
    server.fail("PATCH node a", Fault::Refuse(refusal));
    check(
        &server,
        TurnEnd::Done,
        expect![[r#"
        POST lock a 201
        GET node a 200
        GET record a 404
        POST record a 201
        PATCH node a 422
        GET node a 200
        GET record a 200
        PATCH node a 200
        PUT record a 200
        DELETE transaction 10 200
        DELETE transaction 20 200
        DELETE lock a 200
        POST event LabelsStored 201
        POST event LabelsRestored 201
    "#]],
    )
    .await;
    assert!(server.transactions().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_the_server_finds_invalid_is_set_apart() {
    let server = returning();
    server.fail("PATCH node a", Fault::Refuse(json!({"code": 422, "reason": "Invalid"})));
    check(
        &server,
        TurnEnd::Done,
        expect![[r#"
            POST lock a 201
            GET node a 200
            GET record a 404
            POST record a 201
            PATCH node a 422
            PATCH transaction 20 200
            GET node a 200
            GET record a 200
            PATCH node a 200
            PUT record a 200
            DELETE transaction 10 200
            DELETE lock a 200
            POST event LabelsStored 201
            POST event Quarantined 201
            POST event LabelsRestored 201
        "#]],
    )
    .await;
    let labels = &server.get("transaction 20").unwrap()["metadata"]["labels"];
    assert_eq!(labels["labels.windlass.dev/quarantined"], "refused");
}

#[tokio::test(start_paused = true)]
async fn without_rights_everything_is_kept() {
    let server = world(None, &[deleted("u1", "10", None, "tier=gold")]);
    server.fail("POST record a", Fault::Refuse(json!({"code": 403, "reason": "Forbidden"})));
    check(
        &server,
        TurnEnd::Failed,
        expect![[r#"
        POST lock a 201
        GET node a 404
        GET record a 404
        POST record a 403
        DELETE lock a 200
    "#]],
    )
    .await;
    assert_eq!(server.transactions().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_is_found_out_by_reading() {
    let server = world(None, &[deleted("u1", "10", None, "tier=gold")]);
    server.fail("POST record a", Fault::DoneButUnanswered);
    check(
        &server,
        TurnEnd::Failed,
        expect![[r#"
        POST lock a 201
        GET node a 404
        GET record a 404
        POST record a 504
        DELETE lock a 200
    "#]],
    )
    .await;
    check(
        &server,
        TurnEnd::Done,
        expect![[r#"
        POST lock a 201
        GET node a 404
        GET record a 200
        DELETE transaction 10 200
        DELETE lock a 200
    "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_read_never_leads_to_a_write() {
    for read in ["GET record a", "GET node a"] {
        let server = world(Some(("u2", "")), &[added("u2", "20")]);
        server.fail(read, Fault::Refuse(json!({"code": 500})));
        let scene = Scene::new(&server, HOLDER);
        scene.list();
        assert_eq!(scene.turn().await, TurnEnd::Failed);
        let conversation = scene.conversation().await;
        assert!(!conversation.contains("DELETE transaction"), "{conversation}");
        assert!(!conversation.contains("PATCH"), "{conversation}");
    }
}

#[tokio::test(start_paused = true)]
async fn lock_refused_asks_for_nothing_else() {
    let server = world(None, &[deleted("u1", "10", None, "tier=gold")]);
    let other = Scene::new(&server, "other");
    let held = other.context.locks.acquire(NODE).await.unwrap();
    server.conversation();
    check(
        &server,
        TurnEnd::Refused,
        expect![[r#"
        POST lock a 409
        GET lock a 200
    "#]],
    )
    .await;
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn reg08_a_lock_that_could_not_be_released_is_not_left_behind() {
    let server = world(None, &[deleted("u1", "10", None, "tier=gold")]);
    server.fail("DELETE lock a", Fault::Refuse(json!({"code": 503})));
    let scene = Scene::new(&server, HOLDER);
    scene.list();
    assert_eq!(scene.turn().await, TurnEnd::Done);
    assert!(server.get("lock a").is_some());
    for _ in 0..TURNS_MAX {
        if scene.turn().await == TurnEnd::Done {
            break;
        }
    }
    assert_eq!(server.get("lock a"), None);
    assert!(scene.context.backlog.batch(&NodeHash::of(NODE)).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_lost_lock_ends_the_turn_before_the_next_write() {
    let server = world(None, &[deleted("u1", "10", None, "tier=gold")]);
    let scene = Scene::new(&server, HOLDER);
    scene.list();
    let hash = scene.context.backlog.next().await;
    let lock::Attempt::Held(mut lock) = scene.context.locks.acquire(NODE).await.unwrap() else {
        panic!("nobody else wants it");
    };
    server.remove("lock a");
    tokio::time::advance(Duration::from_secs(4)).await;
    server.conversation();
    let batch = scene.context.backlog.batch(&hash);
    let round = Round::begin(&scene.context, NODE, Cover::Lock(&mut lock)).await;
    assert!(round.unwrap().work_off(&batch).await.is_err());
    expect![[r#"
        GET node a 404
        GET record a 404
        PUT lock a 404
    "#]]
    .assert_eq(&server.conversation());
}

#[tokio::test(start_paused = true)]
async fn poison_is_set_apart_and_later_ones_proceed() {
    let server =
        world(None, &[deleted("u1", "10", None, "tier=gold"), deleted("u1", "8", None, "")]);
    let mut poison = server.get("transaction 8").unwrap();
    poison["data"]["snapshot.json"] = json!("{");
    server.put("transaction 8", poison);
    check(
        &server,
        TurnEnd::Done,
        expect![[r#"
            POST lock a 201
            GET node a 404
            GET record a 404
            PATCH transaction 8 200
            POST record a 201
            GET node a 404
            GET record a 200
            DELETE transaction 10 200
            DELETE lock a 200
            POST event Quarantined 201
            POST event LabelsStored 201
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_name_that_no_node_can_have_is_set_apart_without_a_lock() {
    let node = "a/status";
    let name = TransactionName::new(NodeHash::of(node), "8".parse().unwrap());
    let server = world(None, &[Transaction { name, node: node.to_owned(), ..added("u1", "8") }]);
    check(
        &server,
        TurnEnd::Done,
        expect![[r#"
        PATCH transaction 8 200
    "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_foreign_configmap_is_neither_read_nor_written() {
    let server = returning();
    server.put("record a", json!({"metadata": {"name": NODE}, "data": {"ca.crt": "-----"}}));
    check(
        &server,
        TurnEnd::Done,
        expect![[r#"
            POST lock a 201
            GET node a 200
            GET record a 200
            PATCH transaction 10 200
            PATCH transaction 20 200
            DELETE lock a 200
            POST event NameClash 201
            POST event NameClash 201
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_only_reads() {
    let server = returning();
    let mut scene = Scene::new(&server, HOLDER);
    scene.context.is_dry_run = true;
    scene.list();
    assert_eq!(scene.turn().await, TurnEnd::Done);
    assert!(scene.context.backlog.batch(&NodeHash::of(NODE)).is_empty(), "said once");
    expect![[r#"
        GET node a 200
        GET record a 404
    "#]]
    .assert_eq(&scene.conversation().await);
}

#[tokio::test(start_paused = true)]
async fn rights_that_come_back_make_it_ready_again() {
    let server = world(None, &[deleted("u1", "10", None, "tier=gold")]);
    server.fail("POST record a", Fault::Refuse(json!({"code": 403, "reason": "Forbidden"})));
    let scene = Scene::new(&server, HOLDER);
    scene.list();
    assert_eq!(scene.turn().await, TurnEnd::Failed);
    assert!(scene.health.lack().unwrap().contains("[-]work failed"));
    assert_eq!(scene.turn().await, TurnEnd::Done);
    assert_eq!(scene.health.lack(), None);
}

#[tokio::test(start_paused = true)]
async fn what_another_processor_did_meanwhile_keeps_nobody_from_being_ready() {
    let server = world(None, &[deleted("u1", "10", None, "tier=gold")]);
    server.fail("POST record a", Fault::Refuse(json!({"code": 403, "reason": "Forbidden"})));
    let scene = Scene::new(&server, HOLDER);
    scene.list();
    assert_eq!(scene.turn().await, TurnEnd::Failed);
    server.remove("transaction 10");
    scene.list();
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(scene.health.lack(), None);
}

#[tokio::test(start_paused = true)]
async fn a_lock_is_taken_over_by_time_that_passed_and_not_by_what_clocks_say() {
    for renewed in ["2020-01-01T00:00:00.000000Z", "2030-01-01T00:00:00.000000Z"] {
        let server = world(None, &[deleted("u1", "10", None, "tier=gold")]);
        let spec = json!({
            "holderIdentity": "other", "leaseDurationSeconds": 10, "renewTime": renewed,
        });
        server.put("lock a", json!({"metadata": {"name": NODE}, "spec": spec}));
        let scene = Scene::new(&server, HOLDER);
        scene.list();
        assert_eq!(scene.turn().await, TurnEnd::Refused);
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(scene.turn().await, TurnEnd::Done);
    }
}
