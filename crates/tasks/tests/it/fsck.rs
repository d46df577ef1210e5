//! What fsck finds, and what it mends.

use std::time::Duration;

use bytes::Bytes;
use expect_test::{Expect, expect};
use tasks::core::fsck::Absences;
use tasks::core::keys::{Key, StatusKey};
use tasks::core::record::Record;
use tasks::core::txn::Op;

use crate::scene::{Scene, spec};

/// What is found after `harm`, and what is left of it after the repairs.
fn check(harm: impl FnOnce(&mut Scene, &Record), expected: &Expect) {
    let mut scene = Scene::new();
    let by = scene.register(1);
    let queued = scene.submit(spec());
    let running = scene.claim(&queued, &by);
    scene.assert_in_sync();
    harm(&mut scene, &running);

    let tell = |scene: &Scene| {
        let findings = scene.store.fsck();
        let told: String = findings.iter().map(|finding| format!("{finding}\n")).collect();
        told.replace(&running.id().to_string(), "$T").replace(&by.node.to_string(), "$N")
    };
    let found = tell(&scene);
    for txn in scene.store.fsck().iter().filter_map(tasks::core::fsck::Finding::repair) {
        assert!(scene.store.txn(&txn).succeeded, "nobody else is there");
    }
    expected.assert_eq(&format!("{found}-- repaired --\n{}", tell(&scene)));
}

fn put(key: StatusKey) -> Vec<Op> {
    vec![Op::Put(Key::Status(key), Bytes::new())]
}

#[test]
fn a_missing_status_key_is_put_back() {
    check(
        |scene, task| {
            scene.store.meddle(vec![Op::Delete(Key::Status(task.task.status.key(task.id())))]);
        },
        &expect![[r#"
            /task/status/running/$N/$T is missing
            -- repaired --
        "#]],
    );
}

#[test]
fn a_second_status_key_is_removed() {
    check(
        |scene, task| scene.store.meddle(put(StatusKey::Queued(task.id()))),
        &expect![[r#"
        /task/status/queued/$T is not what its task says
        -- repaired --
    "#]],
    );
}

#[test]
fn a_status_key_without_a_task_is_removed() {
    check(
        |scene, task| scene.store.meddle(vec![Op::Delete(Key::Task(task.id()))]),
        &expect![[r#"
        /task/status/running/$N/$T belongs to no task
        -- repaired --
    "#]],
    );
}

#[test]
fn a_record_that_cannot_be_read_is_told_and_left_alone() {
    check(
        |scene, task| {
            let garbage = Bytes::from_static(b"\xff");
            scene.store.meddle(vec![Op::Put(Key::Task(task.id()), garbage)]);
        },
        &expect![[r#"
            task $T cannot be read
            -- repaired --
            task $T cannot be read
        "#]],
    );
}

#[test]
fn a_task_of_a_lost_node_is_a_finding_after_a_while() {
    let mut scene = Scene::new();
    let by = scene.register(1);
    let queued = scene.submit(spec());
    scene.claim(&queued, &by);
    scene.lose(1);
    let found = |seconds| {
        let gone_for = [(by.node, Duration::from_secs(seconds))].into();
        let absences = Absences { gone_for, ttl: Duration::from_secs(10) };
        scene.store.snapshot().check(&absences).len()
    };
    assert_eq!((found(40), found(41)), (0, 1));
    scene.assert_in_sync();
}

#[test]
fn a_repair_does_nothing_to_a_task_that_has_changed() {
    let mut scene = Scene::new();
    let queued = scene.submit(spec());
    scene.store.meddle(vec![Op::Delete(Key::Status(StatusKey::Queued(queued.id())))]);
    let finding = scene.store.fsck().remove(0);
    let plan = scene.plan_cancel(&queued);
    scene.store.win(&plan);
    assert!(!scene.store.txn(&finding.repair().unwrap()).succeeded);
    scene.assert_in_sync();
}
