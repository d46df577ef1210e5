//! How followers hear that there is something to read, and what they do if they do not.

use etcd_api::mvccpb::EventType;
use http::uri::PathAndQuery;
use tonic::{Request, Status, Streaming, client::Grpc, transport::Endpoint};
use tonic_prost::ProstCodec;

use super::{Replica, leader, move_leader, start, start_known_as, value};
use crate::harness::soon;

const PATH: &str = "/windlass.replica.Tidings/Follow";

/// Hears what a member tells the others.
async fn hear(replica: &Replica) -> Streaming<()> {
    let endpoint = Endpoint::from_shared(replica.peer_url.clone()).expect("it is a URL");
    let mut client = Grpc::new(endpoint.connect().await.expect("it listens"));
    client.ready().await.expect("it is connected");
    let path = PathAndQuery::from_static(PATH);
    let words = client.server_streaming(Request::new(()), path, ProstCodec::<(), ()>::default());
    words.await.expect("members may").into_inner()
}

async fn word(words: &mut Streaming<()>) -> Result<Option<()>, Status> {
    soon(words.message()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_word_comes_at_once_and_with_what_is_written() {
    let mut replicas = start(2).await;
    let holder = leader(&replicas, None).await;
    let mut words = hear(&replicas[holder]).await;
    let mut writer = replicas[holder].store.clients().await;
    for _ in 0..3 {
        assert_eq!(word(&mut words).await.expect("it goes on"), Some(()));
        writer.put("k", "v").await;
    }
    replicas.remove(holder).store.stop().await;
    while let Ok(Some(())) = word(&mut words).await {}
}

#[tokio::test(flavor = "multi_thread")]
async fn who_takes_no_words_holds_up_no_writer() {
    let replicas = start(2).await;
    let holder = leader(&replicas, None).await;
    let mut unheard = Vec::new();
    for _ in 0..20 {
        unheard.push(hear(&replicas[holder]).await);
    }
    let mut writer = replicas[holder].store.clients().await;
    for number in 0..200 {
        writer.put("k", number.to_string()).await;
    }
    let mut reader = replicas[1 - holder].store.clients().await;
    assert_eq!(value(&mut reader, "k").await.as_deref(), Some("199"));
}

/// Members whose addresses lead nowhere hear nothing, and find out by themselves.
#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_tells_is_found() {
    let replicas = start_known_as(2, |_| "http://127.0.0.1:1".to_owned()).await;
    let holder = leader(&replicas, None).await;
    let mut reader = replicas[1 - holder].store.clients().await;
    let mut writer = replicas[holder].store.clients().await;
    for number in 0..20 {
        let key = format!("k{number}");
        writer.put(&key, "v").await;
        reader.change_of(&key, EventType::Put).await;
    }
}

/// Who has lost the role is silent, and who has it now is heard.
#[tokio::test(flavor = "multi_thread")]
async fn words_come_from_who_writes_now() {
    let replicas = start(2).await;
    let old = leader(&replicas, None).await;
    move_leader(&replicas, old, 1 - old).await;
    let mut words = hear(&replicas[1 - old]).await;
    let mut reader = replicas[old].store.clients().await;
    let mut writer = replicas[1 - old].store.clients().await;
    assert_eq!(word(&mut words).await.expect("it goes on"), Some(()));
    writer.put("k", "v").await;
    assert_eq!(word(&mut words).await.expect("it goes on"), Some(()));
    reader.change_of("k", EventType::Put).await;
}
