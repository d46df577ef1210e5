//! Waiting for tasks, and the other questions about them.

use std::time::Duration;

use tasks::service::refusal::Kind;
use tasks::wire::{self, status::Status};

use super::served::{FAR_AHEAD_MS, Plan, Served, assert_refused, id_of, status_of, stuck};
use crate::live::computer::steps;
use crate::live::etcd::Etcd;
use crate::live::waiting::{PATIENCE, until};

#[tokio::test]
async fn a_wait_ends_with_the_tasks_or_with_its_time() {
    let etcd = Etcd::start().await;
    let served = Served::start(&etcd).await;
    let client = served.client().await;
    let short = id_of(&client.submit(steps("sleep 0.2 exit 7")).await.unwrap());
    let never = id_of(&client.submit(stuck()).await.unwrap());
    let answer = client.wait(&[short], PATIENCE).await.unwrap();
    assert!(answer.done);
    let Status::Complete(complete) = status_of(&answer.tasks[0]) else { panic!("{answer:?}") };
    assert_eq!(complete.exit_code, 7);
    let answer = client.wait(&[never, short], Duration::from_millis(50)).await.unwrap();
    assert!(!answer.done);
    let ids: Vec<String> =
        answer.tasks.iter().map(|view| view.task.as_ref().unwrap().id.clone()).collect();
    assert_eq!(ids, [never.to_string(), short.to_string()], "in the order of the request");
}

/// One who waits through one node hears of what runs on another.
#[tokio::test]
async fn every_node_answers_for_all_others() {
    let etcd = Etcd::start().await;
    let first = Served::start(&etcd).await;
    let plan = Plan { name: "node2", rootfs: Some("there"), ..Plan::default() };
    let second = Served::start_as(&etcd, plan).await;
    let client = first.client().await;
    let there = wire::TaskSpec { rootfs: "there".to_owned(), ..steps("exit 3") };
    let id = id_of(&client.submit(there).await.unwrap());
    let answer = client.wait(&[id], PATIENCE).await.unwrap();
    let task = answer.tasks[0].task.as_ref().unwrap();
    assert_eq!(task.attempts[0].node_name, "node2");
    let seen = second.client().await.status(id).await.unwrap();
    assert_eq!(seen.mod_revision, answer.tasks[0].mod_revision);
    second.stop().await;
    first.stop().await;
}

#[tokio::test]
async fn an_explanation_names_each_nodes_obstacle() {
    let etcd = Etcd::start().await;
    let served = Served::start(&etcd).await;
    let client = served.client().await;
    let id = id_of(&client.submit(stuck()).await.unwrap());
    let explained = client.explain(id).await.unwrap();
    assert!(explained.unsatisfiable);
    let [node] = explained.nodes.as_slice() else { panic!("{explained:?}") };
    assert_eq!(node.name, "node1");
    assert_eq!(node.obstacles, ["the node has no rootfs \"nowhere\""]);
    assert_eq!(node.rank, None);
    assert_eq!(explained.not_before_ms, 0, "no backoff keeps it waiting");
}

#[tokio::test]
async fn a_drain_reaches_the_node_that_is_meant() {
    let etcd = Etcd::start().await;
    let first = Served::start(&etcd).await;
    let second = Served::start_as(&etcd, Plan { name: "node2", ..Plan::default() }).await;
    let client = first.client().await;
    until("both nodes", async || (client.nodes().await.ok()?.len() == 2).then_some(())).await;
    client.drain("node2").await.unwrap();
    let left = second.handle.until_standing(|standing| standing.has_left);
    tokio::time::timeout(PATIENCE, left).await.expect("it leaves").expect("it answers");
    assert!(!first.handle.standing().is_draining);
    until("one node", async || (client.nodes().await.ok()?.len() == 1).then_some(())).await;
}

/// One of those that were called so was drained, whichever it was.
#[tokio::test]
async fn a_name_that_several_nodes_have_drains_none() {
    let etcd = Etcd::start().await;
    let first = Served::start(&etcd).await;
    let second = Served::start(&etcd).await;
    let client = first.client().await;
    until("both nodes", async || (client.nodes().await.ok()?.len() == 2).then_some(())).await;
    let refused = client.drain("node1").await;
    assert_refused(refused, Kind::InvalidArgument, "node: 2 nodes are called \"node1\"");
    let id = second.handle.standing().node.expect("it is registered").to_string();
    client.drain(&id).await.unwrap();
    let left = second.handle.until_standing(|standing| standing.has_left);
    tokio::time::timeout(PATIENCE, left).await.expect("it leaves").expect("it answers");
    assert!(!first.handle.standing().is_draining);
}

#[tokio::test]
async fn the_store_is_checked_and_old_tasks_are_removed() {
    let etcd = Etcd::start().await;
    let served = Served::start(&etcd).await;
    let client = served.client().await;
    let id = id_of(&client.submit(steps("exit 0")).await.unwrap());
    client.wait(&[id], PATIENCE).await.unwrap();
    assert_eq!(client.fsck(false).await.unwrap().findings, []);
    let key = "/task/status/queued/0190a7e6-8c00-7d3e-8000-00000000002a";
    etcd.put(key).await;
    let found = client.fsck(true).await.unwrap().findings;
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].key.as_str(), found[0].repaired), (key, true));
    assert_eq!(client.fsck(false).await.unwrap().findings, []);
    assert_eq!(client.gc(0).await.unwrap(), 0);
    assert_eq!(client.gc(FAR_AHEAD_MS).await.unwrap(), 1);
}
