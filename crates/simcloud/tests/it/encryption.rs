//! Certificates: who is let in, and who is believed. Whoever is not has simply not answered.

use std::num::NonZeroU32;

use autoscaler::provider::grpc::Grpc;
use autoscaler::provider::{Error, Provider};

use crate::authority::Authority;
use crate::scene::{Scene, client};

const GROUP: &str = "groups: [{id: a, max: 3}]\n";

async fn is_unknown(client: &Grpc) -> bool {
    let ended = client.increase(&"a".into(), NonZeroU32::MIN).await;
    matches!(ended, Err(Error::Unknown { .. }))
}

#[tokio::test]
async fn both_sides_know_each_other() {
    let authority = Authority::new();
    let scene = Scene::with_tls(GROUP, Some(&authority.server())).await;
    let client = client(&scene.address, Some(authority.client_trusting(&authority)));
    client.refresh().await.unwrap();
    assert_eq!(client.target(&"a".into()).await.unwrap(), 0);
    drop(client);
    scene.stop().await;
}

#[tokio::test]
async fn strangers_get_no_answer() {
    let (authority, other) = (Authority::new(), Authority::new());
    let scene = Scene::with_tls(GROUP, Some(&authority.server())).await;
    let of_other = client(&scene.address, Some(other.client_trusting(&authority)));
    assert!(is_unknown(&of_other).await, "the server does not trust the client");
    let believes_other = client(&scene.address, Some(authority.client_trusting(&other)));
    assert!(is_unknown(&believes_other).await, "the client does not trust the server");
    assert!(is_unknown(&client(&scene.address, None)).await, "the client speaks in plain text");
    let good = client(&scene.address, Some(authority.client_trusting(&authority)));
    assert_eq!(good.target(&"a".into()).await.unwrap(), 0, "nothing was done");
    drop((of_other, believes_other, good));
    scene.stop().await;
}

#[tokio::test]
async fn a_wrong_certificate_is_not_believed_while_it_is_shown() {
    let authority = Authority::new();
    let scenario = format!("{GROUP}faults: [{{fault: wrong-certificate, until: 1m}}]");
    let scene = Scene::with_tls(&scenario, Some(&authority.server())).await;
    let client = client(&scene.address, Some(authority.client_trusting(&authority)));
    assert!(is_unknown(&client).await);
    scene.pass(60);
    client.refresh().await.unwrap();
    drop(client);
    scene.stop().await;
}
