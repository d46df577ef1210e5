//! Locks and elections, with somebody else waiting for each.

use anyhow::{Context, Result};
use etcd_client::{
    Client, GetOptions, LeaseGrantOptions, LockOptions, ProclaimOptions, ResignOptions,
};
use tokio::task::JoinSet;

use crate::transcript::{Transcript, pair};

/// Two who want the same, by their leases.
const FIRST: i64 = 501;
const SECOND: i64 = 502;
const TTL: i64 = 600;

pub(crate) async fn run(client: &mut Client, transcript: &mut Transcript) -> Result<()> {
    for id in [FIRST, SECOND] {
        client.lease_grant(TTL, Some(LeaseGrantOptions::new().with_id(id))).await?;
    }
    lock(client, transcript).await?;
    elect(client, transcript).await
}

async fn lock(client: &mut Client, transcript: &mut Transcript) -> Result<()> {
    let with = |lease| Some(LockOptions::new().with_lease(lease));
    let held = client.lock("lock", with(FIRST)).await?.key().to_vec();
    transcript.say("locked", held.escape_ascii());
    let mut other = client.clone();
    let mut calls = JoinSet::new();
    let waiting = calls.spawn(async move { other.lock("lock", with(SECOND)).await });
    until_two_claim(client, "lock/").await?;
    transcript.say("the second waits", !waiting.is_finished());
    client.unlock(held).await?;
    let held = calls.join_next().await.context("one call")???.key().to_vec();
    transcript.say("locked then", held.escape_ascii());
    client.unlock(held).await?;
    Ok(())
}

async fn elect(client: &mut Client, transcript: &mut Transcript) -> Result<()> {
    transcript.refused("nobody leads", client.leader("lead").await)?;
    let elected = client.campaign("lead", "first", FIRST).await?;
    let leader = elected.leader().context("somebody leads")?.clone();
    transcript.say("elected", leader.key().escape_ascii());
    let mut observed = client.observe("lead").await?;
    let mut other = client.clone();
    let mut calls = JoinSet::new();
    let waiting = calls.spawn(async move { other.campaign("lead", "second", SECOND).await });
    until_two_claim(client, "lead/").await?;
    transcript.say("the second waits", !waiting.is_finished());
    let proclaim = ProclaimOptions::new().with_leader(leader.clone());
    client.proclaim("still first", Some(proclaim)).await?;
    let led = client.leader("lead").await?;
    transcript.say("leader", led.kv().map(pair).unwrap_or_default());
    client.resign(Some(ResignOptions::new().with_leader(leader))).await?;
    let elected = calls.join_next().await.context("one call")???;
    let next = elected.leader().context("somebody leads")?;
    transcript.say("elected then", next.key().escape_ascii());
    // What came between may be left out: only the newest leader is promised.
    loop {
        let answer = observed.message().await?.context("the stream ended")?;
        let kv = answer.kv().context("a leader has a key")?;
        if kv.key() == next.key() {
            transcript.say("observed", pair(kv));
            return Ok(());
        }
    }
}

/// A claim is a key; whoever waits has one too.
async fn until_two_claim(client: &mut Client, prefix: &str) -> Result<()> {
    loop {
        let options = GetOptions::new().with_prefix().with_count_only();
        if client.get(prefix, Some(options)).await?.count() == 2 {
            return Ok(());
        }
    }
}
