//! Settings of the grid that decide whether an acknowledged write can be lost.
//!
//! A zone's replicas are told by SQL, whether Raft's log is synced only by each node over REST.

mod rest;

use ignite_client::Client;

use crate::{Error, Options, Unsafe, error::Step, options::REPLICAS_MIN};

/// Above this the clocks of nodes may differ by more than readers wait.
const CLOCK_SKEW_MS_MAX: u64 = 500;

/// Refuses what is unsafe, by name; or logs it, where the user allows it.
pub(crate) async fn check(client: &Client, options: &Options) -> Result<(), Error> {
    let found = match find(client, options).await {
        Err(error @ (Error::NoRest | Error::Rest { .. })) if options.is_unsafe_allowed => {
            tracing::warn!(%error, "the settings of the grid are not known, which is allowed");
            return Ok(());
        }
        found => found?,
    };
    if found.is_empty() {
        return Ok(());
    }
    if !options.is_unsafe_allowed {
        return Err(Error::UnsafeSettings { unsafe_settings: found });
    }
    for setting in found {
        tracing::warn!(%setting, "acknowledged writes can be lost, which is allowed");
    }
    Ok(())
}

async fn find(client: &Client, options: &Options) -> Result<Vec<Unsafe>, Error> {
    let mut found: Vec<Unsafe> = replicas(client, &options.schema).await?.into_iter().collect();
    if options.rest.is_empty() {
        return Err(Error::NoRest);
    }
    for address in &options.rest {
        let node = rest::Node { address, credentials: options.client.credentials.as_ref() };
        let fsync = node.setting("node", "ignite.raft.fsync").await?;
        if fsync != serde_json::Value::Bool(true) {
            found.push(Unsafe {
                setting: format!("ignite.raft.fsync of {address}"),
                found: fsync.to_string(),
                needed: "true".to_owned(),
            });
        }
    }
    let node =
        rest::Node { address: &options.rest[0], credentials: options.client.credentials.as_ref() };
    let skew = node.setting("cluster", "ignite.schemaSync.maxClockSkewMillis").await?;
    if skew.as_u64().is_none_or(|skew| skew > CLOCK_SKEW_MS_MAX) {
        found.push(Unsafe {
            setting: "ignite.schemaSync.maxClockSkewMillis".to_owned(),
            found: skew.to_string(),
            needed: format!("at most {CLOCK_SKEW_MS_MAX}"),
        });
    }
    Ok(found)
}

async fn replicas(client: &Client, zone: &str) -> Result<Option<Unsafe>, Error> {
    let statement = "SELECT ZONE_REPLICAS FROM SYSTEM.ZONES WHERE ZONE_NAME = ?";
    let asked = client.execute(None, statement, &[zone.into()]).await;
    let row =
        asked.step("read the zone's settings")?.next().await.step("read the zone's settings")?;
    let found = row.and_then(|row| row.values()[0].as_i64()).unwrap_or(0);
    let is_safe = found >= i64::from(REPLICAS_MIN);
    Ok((!is_safe).then(|| Unsafe {
        setting: format!("REPLICAS of zone {zone}"),
        found: found.to_string(),
        needed: format!("at least {REPLICAS_MIN}"),
    }))
}
