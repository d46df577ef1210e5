//! `grpc.health.v1`.

use etcd_api::health::{
    HealthCheckRequest, HealthListRequest, health_check_response::ServingStatus,
};

use crate::harness::{Store, refusal, soon};

fn check(service: &str) -> HealthCheckRequest {
    HealthCheckRequest { service: service.into() }
}

#[tokio::test]
async fn the_store_as_a_whole_is_serving() {
    let store = Store::start().await;
    let health = &mut store.clients().await.health;
    let answer = health.check(check("")).await.unwrap().into_inner();
    assert_eq!(answer.status(), ServingStatus::Serving);
    let list = health.list(HealthListRequest {}).await.unwrap().into_inner();
    let statuses: Vec<_> =
        list.statuses.iter().map(|(name, one)| (&**name, one.status())).collect();
    assert_eq!(statuses, [("", ServingStatus::Serving)]);
}

#[tokio::test]
async fn other_services_are_not_known() {
    let store = Store::start().await;
    let health = &mut store.clients().await.health;
    assert_eq!(refusal(health.check(check("etcdserverpb.KV")).await), "NotFound: unknown service");
    let mut states = health.watch(check("etcdserverpb.KV")).await.unwrap().into_inner();
    let first = soon(states.message()).await.unwrap().unwrap();
    assert_eq!(first.status(), ServingStatus::ServiceUnknown);
}

#[tokio::test]
async fn a_watch_begins_with_the_state_of_now() {
    let store = Store::start().await;
    let health = &mut store.clients().await.health;
    let mut states = health.watch(check("")).await.unwrap().into_inner();
    let first = soon(states.message()).await.unwrap().unwrap();
    assert_eq!(first.status(), ServingStatus::Serving);
}

/// It told nothing and did not end, so that every stop took the five seconds after which it is cut off.
#[tokio::test]
async fn a_watch_held_up_the_end_of_the_store() {
    let store = Store::start().await;
    let health = &mut store.clients().await.health;
    let mut states = health.watch(check("")).await.unwrap().into_inner();
    assert_eq!(soon(states.message()).await.unwrap().unwrap().status(), ServingStatus::Serving);
    store.stop().await;
    assert_eq!(soon(states.message()).await.unwrap().unwrap().status(), ServingStatus::NotServing);
    assert!(soon(states.message()).await.unwrap().is_none(), "it ends, and is not cut off");
}
