//! How an instance ends when nobody ends it in order.

use std::sync::Arc;

use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Config;
use kube::runtime::controller::Error as ControllerError;

use super::scene::{D, Probe, Scene, identity, names, poll, stored};
use crate::instance::driver::Driver;
use crate::instance::kind::Selectors;
use crate::instance::lease::OwnLease;
use crate::instance::lifecycle;
use crate::instance::metrics::Metrics;
use crate::instance::standing::Standing;
use crate::instance::{Error, Stop, lease_client};

/// A driver of the scene's desk, towards a server that is not there.
fn driver(scene: &Scene, standing: &Arc<Standing>) -> Driver {
    let client = lease_client(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
    let lease = OwnLease::new(client.clone(), identity(), None, (D, Metrics::default()));
    Driver {
        desk: Arc::clone(&scene.desk),
        standing: Arc::clone(standing),
        lease: Arc::new(lease),
        client,
        names: names(),
        selectors: Selectors::new(&names(), &identity().id),
        of_ring: Vec::new(),
    }
}

#[tokio::test]
async fn when_the_task_is_gone_everything_stops_and_those_who_wait_learn_it() {
    let (scene, probe) = (Scene::new(), Probe::default());
    let standing = Arc::new(Standing::default());
    let keeping = lifecycle::keep(driver(&scene, &standing).run());
    let future = probe.clone();
    let mut reconcile = scene
        .shard
        .wrap(move |_: Arc<ConfigMap>, _: Arc<()>| future.future::<Result<_, kube::Error>>());
    let mut running = reconcile(Arc::new(stored("a-0", 7, false)), Arc::new(()));
    assert!(poll(&mut running).is_pending());
    drop(keeping);
    standing.over().cancelled().await;
    assert!(poll(&mut running).is_ready());
    assert!(probe.is_gone());
    assert_eq!(standing.end(), None, "nobody said how");
    let mut next = reconcile(Arc::new(stored("a-0", 7, false)), Arc::new(()));
    assert!(poll(&mut next).is_ready(), "and nothing else begins");
    assert_eq!(probe.polled(), 1);
}

/// kube's own graceful shutdown waited for a first list that it had stopped itself: an instance that
/// was told to stop right after its start never ended.
#[tokio::test]
async fn a_controller_ends_with_the_place_though_its_first_list_has_not_come() {
    let scene = Scene::new();
    let worked = stream::pending::<Result<_, ControllerError<kube::Error, kube::Error>>>();
    let outcomes = scene.shard.outcomes::<ConfigMap, _, _, _>(worked);
    scene.pause(D);
    let keeping = lifecycle::keep(driver(&scene, &scene.standing()).run());
    assert_eq!(outcomes.count().await, 0);
    drop(keeping);
}

#[tokio::test]
async fn a_loss_resolves_lost_and_is_what_stop_says() {
    let scene = Scene::new();
    let lost = scene.shard.lost();
    scene.pause(D);
    let keeping = lifecycle::keep(driver(&scene, &scene.standing()).run());
    lost.await;
    assert!(scene.shard.loss().is_some());
    let stopped = scene.shard.stop(Stop::Release).await;
    assert!(matches!(stopped, Err(Error::Lost(_))), "{stopped:?}");
    drop(keeping);
}
