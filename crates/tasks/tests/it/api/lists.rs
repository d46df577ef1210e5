//! Lists and watches.

use std::collections::BTreeSet;

use tasks::service::refusal::{Kind, Refusal};
use tasks::wire;
use tasks::wire::watch_response::Event;

use super::served::{FAR_AHEAD_MS, Served, assert_refused, id_of, stuck};
use crate::live::computer::steps;
use crate::live::etcd::Etcd;
use crate::live::waiting::PATIENCE;

fn page(limit: u32, token: &str) -> wire::ListRequest {
    wire::ListRequest { limit, token: token.to_owned(), ..Default::default() }
}

#[tokio::test]
async fn all_pages_of_a_list_show_one_revision() {
    let etcd = Etcd::start().await;
    let served = Served::start(&etcd).await;
    let client = served.client().await;
    let batch = client.submit_batch(vec![stuck(); 5]).await.unwrap();
    let submitted: BTreeSet<String> =
        batch.into_iter().map(|each| each.expect("there is room").id).collect();
    let mut stub = served.stub().await;
    let mut seen = BTreeSet::new();
    let mut pages = Vec::new();
    let mut token = String::new();
    loop {
        let page = stub.list(page(2, &token)).await.unwrap().into_inner();
        assert!(page.tasks.len() <= 2);
        seen.extend(page.tasks.into_iter().filter_map(|view| Some(view.task?.id)));
        pages.push(page.revision);
        // What comes between two pages is on none of them.
        client.submit(stuck()).await.unwrap();
        token = page.next_token;
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(seen, submitted);
    assert!(pages.len() >= 3 && pages.iter().all(|at| *at == pages[0]), "{pages:?}");
}

#[tokio::test]
async fn a_list_that_was_compacted_is_out_of_range() {
    let etcd = Etcd::start().await;
    let served = Served::start(&etcd).await;
    let client = served.client().await;
    client.submit_batch(vec![stuck(); 3]).await.unwrap();
    let mut stub = served.stub().await;
    let first = stub.list(page(1, "")).await.unwrap().into_inner();
    client.submit(stuck()).await.unwrap();
    etcd.compact().await;
    let refused = stub.list(page(1, &first.next_token)).await.unwrap_err();
    assert_eq!(Refusal::from(refused).kind, Kind::OutOfRange);
}

#[tokio::test]
async fn lists_are_filtered_by_what_the_records_say() {
    let etcd = Etcd::start().await;
    let served = Served::start(&etcd).await;
    let client = served.client().await;
    let labels = |value: &str| [("team".to_owned(), value.to_owned())].into();
    let red = wire::TaskSpec { labels: labels("red"), ..stuck() };
    let blue = wire::TaskSpec { labels: labels("blue"), ..stuck() };
    let red = id_of(&client.submit(red).await.unwrap());
    let blue = id_of(&client.submit(blue).await.unwrap());
    let ended = id_of(&client.submit(steps("exit 0")).await.unwrap());
    client.wait(&[ended], PATIENCE).await.unwrap();
    let node = client.nodes().await.unwrap()[0].node_id.clone();
    let prefix = blue.to_string()[..9].to_owned();
    for (what, filter, expected) in [
        ("all", wire::Filter::default(), vec![red, blue, ended]),
        ("labels", wire::Filter { labels: labels("red"), ..Default::default() }, vec![red]),
        ("node", wire::Filter { node_id: node, ..Default::default() }, vec![ended]),
        ("prefix", wire::Filter { id_prefix: prefix, ..Default::default() }, vec![blue]),
        (
            "states",
            wire::Filter { states: vec![wire::State::Complete.into()], ..Default::default() },
            vec![ended],
        ),
    ] {
        let found = client.list(filter, 100).await.unwrap().tasks;
        let found: BTreeSet<String> =
            found.into_iter().filter_map(|view| Some(view.task?.id)).collect();
        let expected: BTreeSet<String> = expected.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{what}");
    }
    assert_eq!(client.find(&red.to_string()[..8]).await.unwrap(), red);
    assert!(client.find("0000").await.is_err());
}

#[tokio::test]
async fn a_watch_shows_what_happens_from_its_beginning_on() {
    let etcd = Etcd::start().await;
    let served = Served::start(&etcd).await;
    let client = served.client().await;
    let mut watch = client.watch(wire::Filter::default()).await.unwrap();
    let id = id_of(&client.submit(steps("exit 0")).await.unwrap());
    client.wait(&[id], PATIENCE).await.unwrap();
    client.gc(FAR_AHEAD_MS).await.unwrap();
    let mut revisions = Vec::new();
    let deleted = loop {
        match watch.message().await.unwrap().expect("it goes on").event.expect("an event") {
            Event::Changed(view) => revisions.push(view.mod_revision),
            Event::Deleted(id) => break id,
        }
    };
    assert_eq!(deleted, id.to_string());
    assert_eq!(revisions.len(), 3, "queued, running, complete");
    assert!(revisions.is_sorted());
}

/// Nobody reads this watch: what the node keeps for all is soon more than it may be behind.
#[tokio::test]
async fn a_watch_that_is_not_read_is_cut_off() {
    let etcd = Etcd::start().await;
    let served = Served::start(&etcd).await;
    let client = served.client().await;
    let mut watch = client.watch(wire::Filter::default()).await.unwrap();
    let large = || wire::TaskSpec { args: vec!["x".repeat(16 << 10)], ..stuck() };
    for _ in 0..15 {
        let batch = client.submit_batch((0..200).map(|_| large()).collect()).await.unwrap();
        assert!(batch.iter().all(Result::is_ok));
    }
    let cut_off = loop {
        match watch.message().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("it ended without a word"),
            Err(status) => break Refusal::from(status),
        }
    };
    assert_refused::<()>(Err(cut_off.into()), Kind::ResourceExhausted, "list again");
}
