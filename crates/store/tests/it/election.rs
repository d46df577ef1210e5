//! `v3electionpb.Election`.

use etcd_api::{
    etcdserverpb::{LeaseGrantRequest, LeaseRevokeRequest},
    mvccpb::EventType,
    v3electionpb::{
        CampaignRequest, CampaignResponse, LeaderKey, LeaderRequest, LeaderResponse,
        ProclaimRequest, ResignRequest,
    },
};
use tokio::task::JoinSet;
use tonic::{Status, Streaming};

use crate::harness::{Clients, Store, refusal, soon};

fn campaign(lease: i64, value: &'static str) -> CampaignRequest {
    CampaignRequest { name: "e".into(), lease, value: value.into() }
}

fn who() -> LeaderRequest {
    LeaderRequest { name: "e".into() }
}

async fn grant(clients: &mut Clients, id: i64) {
    let request = LeaseGrantRequest { ttl: 600, id };
    clients.lease.lease_grant(request).await.expect("the id is free");
}

/// Elects `lease` without competition.
async fn elect(clients: &mut Clients, lease: i64, value: &'static str) -> LeaderKey {
    grant(clients, lease).await;
    let won = clients.election.campaign(campaign(lease, value)).await.expect("nobody else stands");
    won.into_inner().leader.expect("a leader has a key")
}

async fn next(stream: &mut Streaming<LeaderResponse>) -> (String, i64) {
    let told = soon(stream.message()).await.expect("it goes on").expect("it goes on");
    let kv = told.kv.expect("a leader has a key");
    let value = String::from_utf8_lossy(kv.value()).into_owned();
    (value, told.header.expect("all answers have one").revision)
}

/// Begins a campaign and waits until it stands in line.
async fn stand(clients: &mut Clients, lease: i64) -> JoinSet<Result<CampaignResponse, Status>> {
    grant(clients, lease).await;
    let mut election = clients.election.clone();
    let mut running = JoinSet::new();
    running.spawn(async move {
        election.campaign(campaign(lease, "b")).await.map(tonic::Response::into_inner)
    });
    clients.change_of(&format!("e/{lease:x}"), EventType::Put).await;
    running
}

#[tokio::test]
async fn the_first_that_stands_leads() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    let leader = elect(&mut clients, 0x1a, "a").await;
    assert_eq!((&*leader.name, &*leader.key), (&b"e"[..], &b"e/1a"[..]));
    assert_eq!((leader.rev, leader.lease), (2, 0x1a));
    let found = clients.election.leader(who()).await.unwrap().into_inner();
    assert_eq!(found.kv.unwrap().value(), b"a");
}

#[tokio::test]
async fn nobody_leads_before_anyone_stands() {
    let store = Store::start().await;
    let election = &mut store.clients().await.election;
    assert_eq!(refusal(election.leader(who()).await), "Unknown: election: no leader");
}

#[tokio::test]
async fn a_campaign_waits_for_the_leader_to_resign() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    let first = elect(&mut clients, 1, "a").await;
    let mut second = stand(&mut clients, 2).await;
    clients.election.resign(ResignRequest { leader: Some(first) }).await.unwrap();
    let won = soon(second.join_next()).await.unwrap().unwrap().unwrap();
    let leader = won.leader.unwrap();
    assert_eq!((&*leader.key, leader.lease), (&b"e/2"[..], 2));
    // The header is of the moment the campaign began.
    assert_eq!(won.header.unwrap().revision, leader.rev);
}

/// etcd elects whoever waited longest although its lease has ended and its key is gone.
#[tokio::test]
async fn a_campaign_whose_lease_has_ended_is_lost() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    elect(&mut clients, 1, "a").await;
    let mut second = stand(&mut clients, 2).await;
    for id in [2, 1] {
        clients.lease.lease_revoke(LeaseRevokeRequest { id }).await.unwrap();
    }
    let answer = soon(second.join_next()).await.unwrap().unwrap();
    assert_eq!(refusal(answer), "Unknown: election: not leader");
}

#[tokio::test]
async fn a_candidate_that_goes_away_leaves_the_line() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    let first = elect(&mut clients, 1, "a").await;
    let mut second = stand(&mut clients, 2).await;
    let mut third = stand(&mut clients, 3).await;
    second.shutdown().await;
    clients.election.resign(ResignRequest { leader: Some(first) }).await.unwrap();
    let won = soon(third.join_next()).await.unwrap().unwrap().unwrap();
    assert_eq!(won.leader.unwrap().lease, 3);
}

#[tokio::test]
async fn campaigning_again_proclaims_the_new_value() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    let first = elect(&mut clients, 1, "a").await;
    let again = clients.election.campaign(campaign(1, "b")).await.unwrap().into_inner();
    assert_eq!(again.leader.unwrap().rev, first.rev);
    let found = clients.election.leader(who()).await.unwrap().into_inner();
    assert_eq!(found.kv.unwrap().value(), b"b");
}

#[tokio::test]
async fn only_the_leader_proclaims() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    let leader = elect(&mut clients, 1, "a").await;
    let proclaim = |leader: Option<LeaderKey>| ProclaimRequest { leader, value: "b".into() };
    clients.election.proclaim(proclaim(Some(leader.clone()))).await.unwrap();
    let old = LeaderKey { rev: leader.rev + 1, ..leader.clone() };
    assert_eq!(
        refusal(clients.election.proclaim(proclaim(Some(old))).await),
        "Unknown: election: not leader"
    );
    assert_eq!(
        refusal(clients.election.proclaim(proclaim(None)).await),
        "Unknown: \"leader\" field must be provided"
    );
    assert_eq!(
        refusal(clients.election.resign(ResignRequest { leader: None }).await),
        "Unknown: \"leader\" field must be provided"
    );
}

/// Resigning twice is no error, and never takes the lead from whoever has it now.
#[tokio::test]
async fn who_does_not_lead_resigns_without_effect() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    let leader = elect(&mut clients, 1, "a").await;
    let resign = ResignRequest { leader: Some(leader) };
    clients.election.resign(resign.clone()).await.unwrap();
    clients.election.campaign(campaign(1, "b")).await.unwrap();
    clients.election.resign(resign).await.unwrap();
    assert_eq!(
        clients.election.leader(who()).await.unwrap().into_inner().kv.unwrap().value(),
        b"b"
    );
}

#[tokio::test]
async fn observers_hear_of_every_leader_and_proclamation() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    let mut observed = clients.election.observe(who()).await.unwrap().into_inner();
    let first = elect(&mut clients, 1, "a").await;
    assert_eq!(next(&mut observed).await, ("a".into(), 2));
    let mut second = stand(&mut clients, 2).await;
    let proclaim = ProclaimRequest { leader: Some(first.clone()), value: "c".into() };
    clients.election.proclaim(proclaim).await.unwrap();
    assert_eq!(next(&mut observed).await, ("c".into(), 4));
    clients.election.resign(ResignRequest { leader: Some(first) }).await.unwrap();
    soon(second.join_next()).await.unwrap().unwrap().unwrap();
    assert_eq!(next(&mut observed).await.0, "b");
    // One who comes later hears of the leader of now.
    let mut late = clients.election.observe(who()).await.unwrap().into_inner();
    assert_eq!(next(&mut late).await.0, "b");
}

#[tokio::test]
async fn observing_needs_the_right_to_read() {
    let store = Store::start().await;
    let mut anybody = store.clients().await;
    anybody.add_user("alice").await;
    anybody.enable_auth().await;
    let mut alice = store.login("alice").await;
    let mut observed = alice.election.observe(who()).await.unwrap().into_inner();
    let told = soon(observed.message()).await;
    assert_eq!(refusal(told), "Unknown: etcdserver: permission denied");
}
