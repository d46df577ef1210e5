//! What a call that did not succeed is taken for, and whether it is made again.

use std::num::NonZeroU32;

use autoscaler::provider::{Error, Method, NodeRef, Provider};
use registry::{GroupId, InstanceId};

use crate::scene::{Scene, client};

fn group() -> GroupId {
    "a".into()
}

async fn scene(fault: &str) -> Scene {
    Scene::new(&format!("groups: [{{id: a, max: 9, target: 1}}]\nfaults: [{{{fault}}}]")).await
}

fn first_node() -> [NodeRef; 1] {
    [NodeRef::unregistered(&InstanceId("simcloud://a/a-0".to_owned()))]
}

#[tokio::test]
async fn no_answer_after_the_effect_is_unknown_and_not_repeated() {
    let fault = "fault: timeout-after-effect, method: NodeGroupIncreaseSize, count: 1";
    let scene = scene(fault).await;
    let client = scene.client();
    let two = NonZeroU32::new(2).unwrap();
    let ended = client.increase(&group(), two).await;
    assert!(matches!(ended, Err(Error::Unknown { .. })), "{ended:?}");
    assert_eq!(client.target(&group()).await.unwrap(), 3, "it was done, and done once");
    scene.stop().await;
}

#[tokio::test]
async fn a_mutation_that_may_not_have_arrived_is_not_repeated() {
    let fault = "fault: call-fails, method: NodeGroupIncreaseSize, code: unavailable, count: 1";
    let scene = scene(fault).await;
    let client = scene.client();
    let ended = client.increase(&group(), NonZeroU32::MIN).await;
    assert!(matches!(ended, Err(Error::Unknown { .. })), "{ended:?}");
    assert_eq!(client.target(&group()).await.unwrap(), 1);
    scene.stop().await;
}

#[tokio::test]
async fn a_refusal_is_a_refusal() {
    let scene = scene("fault: delete-fails, message: locked by hand").await;
    let ended = scene.client().delete(&group(), &first_node()).await;
    match ended {
        Err(Error::Rejected { message, .. }) => assert_eq!(message, "locked by hand"),
        other => panic!("{other:?}"),
    }
    scene.stop().await;
}

#[tokio::test]
async fn what_is_unsupported_is_asked_once() {
    // Were it asked again, it would work.
    let scene = scene("fault: delete-unimplemented, count: 1").await;
    let client = scene.client();
    for _ in 0..2 {
        let ended = client.delete(&group(), &first_node()).await;
        assert!(matches!(ended, Err(Error::Unsupported { .. })), "{ended:?}");
    }
    assert_eq!(client.unsupported(&group()), [Method::NodeGroupDeleteNodes]);
    assert_eq!(client.unsupported(&"b".into()), []);
    assert_eq!(client.target(&group()).await.unwrap(), 1);
    scene.stop().await;
}

#[tokio::test]
async fn a_read_is_repeated_twice() {
    for (failures, is_answered) in [(2, true), (3, false)] {
        let fault = "fault: call-fails, method: NodeGroupTargetSize";
        let scene = scene(&format!("{fault}, count: {failures}")).await;
        assert_eq!(scene.client().target(&group()).await.is_ok(), is_answered, "{failures}");
        scene.stop().await;
    }
}

#[tokio::test]
async fn a_read_that_took_all_its_time_is_not_repeated() {
    let scene = scene("fault: timeout-after-effect, method: NodeGroupTargetSize, count: 1").await;
    let client = scene.client();
    let ended = client.target(&group()).await;
    assert!(matches!(ended, Err(Error::Unknown { .. })), "{ended:?}");
    assert_eq!(client.target(&group()).await.unwrap(), 1, "only the first goes unanswered");
    scene.stop().await;
}

#[tokio::test]
async fn the_gpu_label_is_asked_for_once() {
    let scene = scene("fault: call-fails, method: GPULabel, from: 1s").await;
    let client = scene.client();
    assert_eq!(client.gpu_label().await.unwrap(), "");
    scene.pass(1);
    assert_eq!(client.gpu_label().await.unwrap(), "");
    assert!(scene.client().gpu_label().await.is_err(), "another client has to ask");
    scene.stop().await;
}

#[tokio::test]
async fn who_is_not_there_does_not_answer() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let ended = client(&address, None).increase(&group(), NonZeroU32::MIN).await;
    assert!(matches!(ended, Err(Error::Unknown { .. })), "{ended:?}");
}

#[tokio::test]
async fn who_dies_before_answering_has_not_answered() {
    let scene = scene("fault: timeout-after-effect, method: NodeGroupIncreaseSize").await;
    let (client, handle, group) = (scene.client(), scene.handle.clone(), group());
    let call = client.increase(&group, NonZeroU32::MIN);
    let death = async {
        // The call has had its effect, and waits.
        while handle.target(&group).await.unwrap() == 1 {
            tokio::task::yield_now().await;
        }
        drop(scene);
    };
    let (ended, ()) = tokio::join!(call, death);
    assert!(matches!(ended, Err(Error::Unknown { .. })), "{ended:?}");
}

#[tokio::test]
async fn a_lost_connection_is_made_anew() {
    let scene = scene("fault: never-ready").await;
    let client = scene.client();
    assert!(client.refresh().await.is_ok());
    let address = scene.address.clone();
    scene.stop().await;
    assert!(client.refresh().await.is_err());
    let listener = tokio::net::TcpListener::bind(&address).await.unwrap();
    let (handle, _) = crate::scene::cloud("groups: [{id: a, max: 1}]");
    let server = simcloud::server::Server::new(handle, listener, None).unwrap();
    let shutdown = tokio_util::sync::CancellationToken::new();
    let (refreshed, served) = tokio::join!(
        async {
            let refreshed = client.refresh().await;
            shutdown.cancel();
            refreshed
        },
        server.run(shutdown.clone()),
    );
    refreshed.unwrap();
    served.unwrap();
}
