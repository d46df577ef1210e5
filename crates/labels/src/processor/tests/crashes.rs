//! A processor that dies at any of its writes, and another that goes on.

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value;

use super::*;

/// Writes of the longest story, and some more.
const WRITES_MAX: usize = 20;

/// Turns until the queue is empty; a dead processor's lock takes some.
const TURNS_MAX: usize = 20;

fn story() -> Server {
    world(
        Some(("u3", "fresh=1")),
        &[
            deleted("u1", "8", None, "tier=gold rack=4"),
            added("u2", "9"),
            deleted("u2", "10", Some("8"), "tier=silver rack=4"),
            added("u3", "11"),
        ],
    )
}

/// What is left when everything was worked off.
async fn work_off(server: &Server, holder: &str) -> BTreeMap<String, Value> {
    let scene = Scene::new(server, holder);
    scene.list();
    for _ in 0..TURNS_MAX {
        if scene.context.backlog.census().pending == 0 {
            return server.leftovers();
        }
        scene.turn().await;
    }
    panic!("not worked off after {TURNS_MAX} turns:\n{}", server.conversation());
}

#[tokio::test(start_paused = true)]
async fn dying_at_any_write_changes_nothing_in_the_end() {
    let undisturbed = work_off(&story(), "first").await;
    let mut deaths = 0;
    for (nth, is_done) in (0..WRITES_MAX).flat_map(|nth| [(nth, false), (nth, true)]) {
        let server = story();
        server.die_at(nth, is_done);
        let died = server.died.clone();
        tokio::select! {
            biased;
            () = died.notified() => deaths += 1,
            _ = work_off(&server, "first") => {}
        }
        server.revive();
        // The lock of the dead one is waited for by its successor.
        tokio::time::advance(Duration::from_millis(1)).await;
        let left = work_off(&server, "second").await;
        assert_eq!(left, undisturbed, "died at write {nth}, done: {is_done}");
    }
    assert!((10..2 * WRITES_MAX).contains(&deaths), "the story has {deaths} places to die at");
}
