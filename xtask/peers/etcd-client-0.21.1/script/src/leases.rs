//! Leases: granted, kept alive, looked at, revoked with their keys.

use anyhow::{Context, Result};
use etcd_client::{Client, LeaseGrantOptions, LeaseTimeToLiveOptions, PutOptions};

use crate::transcript::{Transcript, pairs};

const LEASE: i64 = 4711;
const TTL: i64 = 600;

pub(crate) async fn run(client: &mut Client, transcript: &mut Transcript) -> Result<()> {
    let own = || Some(LeaseGrantOptions::new().with_id(LEASE));
    let granted = client.lease_grant(TTL, own()).await?;
    transcript.say("grant", format!("{} for {}", granted.id(), granted.ttl()));
    transcript.refused("grant again", client.lease_grant(TTL, own()).await)?;
    let options = PutOptions::new().with_lease(LEASE);
    client.put("leased", "1", Some(options)).await?;
    let options = LeaseTimeToLiveOptions::new().with_keys();
    let left = client.lease_time_to_live(LEASE, Some(options)).await?;
    let keys: Vec<_> = left.keys().iter().map(|key| key.escape_ascii().to_string()).collect();
    let is_plausible = (TTL - 60..=TTL).contains(&left.ttl());
    transcript.say("left", format!("{is_plausible} of {}, {keys:?}", left.granted_ttl()));
    keep_alive(client, transcript).await?;
    let listed: Vec<i64> = client.leases().await?.leases().iter().map(|each| each.id()).collect();
    transcript.say("leases", format!("{listed:?}"));
    client.lease_revoke(LEASE).await?;
    transcript.say("after revoking", pairs(client.get("leased", None).await?.kvs()));
    transcript.refused("revoke again", client.lease_revoke(LEASE).await)?;
    let left = client.lease_time_to_live(LEASE, None).await?;
    transcript.say("left of nothing", left.ttl());
    Ok(())
}

async fn keep_alive(client: &mut Client, transcript: &mut Transcript) -> Result<()> {
    let (mut keeper, mut answers) = client.lease_keep_alive(LEASE).await?;
    for _ in 0..3 {
        keeper.keep_alive().await?;
        let answer = answers.message().await?.context("the stream ended")?;
        transcript.say("kept alive", format!("{} for {}", answer.id(), answer.ttl()));
    }
    Ok(())
}
