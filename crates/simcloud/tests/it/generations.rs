//! The two generations of the wire: what only one of them can say.

use autoscaler::provider::{GroupOptions, Provider};
use jiff::SignedDuration;
use registry::Times;

use crate::scene::Scene;

const GROUP: &str = "groups: [{id: a, max: 3, options: {unneeded: 1m, startup: 2m}}]";

/// Unneeded and startup time, in minutes, as read.
async fn check(scene: &Scene) -> (i64, i64) {
    let defaults = GroupOptions::with_times(&Times::default());
    let options = scene.client().options(&"a".into(), &defaults).await.expect("options");
    let minutes = |time: Option<SignedDuration>| time.expect("a time").as_mins();
    (minutes(options.times.unneeded), minutes(options.times.startup))
}

#[tokio::test]
async fn an_old_provider_knows_no_startup_time() {
    for (generation, expected) in [("legacy", (1, 15)), ("current", (1, 2)), ("both", (1, 2))] {
        let scene = Scene::new(&format!("generation: {generation}\n{GROUP}")).await;
        assert_eq!(check(&scene).await, expected, "{generation}");
        scene.stop().await;
    }
}

#[tokio::test]
async fn a_provider_may_change_its_generation() {
    let fault = "faults: [{fault: legacy-replies, until: 1m}]";
    let scene = Scene::new(&format!("generation: current\n{GROUP}\n{fault}")).await;
    assert_eq!(check(&scene).await, (1, 15));
    scene.pass(60);
    assert_eq!(check(&scene).await, (1, 2));
    scene.stop().await;
}
