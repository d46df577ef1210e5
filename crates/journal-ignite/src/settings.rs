//! Settings of the grid that decide whether an acknowledged write can be lost.
//!
//! A zone's replicas and mode are told by SQL, whether Raft's log is synced only by each node over REST.

mod rest;

pub(crate) use rest::ENCRYPTED;

use ignite_client::{Client, Value};

use crate::{Error, Options, Unsafe, error::Step, options::REPLICAS_MIN};

/// Above this the clocks of nodes may differ by more than readers wait.
const CLOCK_SKEW_MS_MAX: u64 = 500;
const FSYNC: &str = "ignite.raft.fsync";
const ZONE: &str =
    "SELECT ZONE_REPLICAS, ZONE_CONSISTENCY_MODE FROM SYSTEM.ZONES WHERE ZONE_NAME = ?";
/// A zone of the other mode goes on with what a minority has once most of its nodes are gone.
const CONSISTENT: &str = "STRONG_CONSISTENCY";
const CLOCK_SKEW: &str = "ignite.schemaSync.maxClockSkewMillis";

/// What was found of settings that are not refused.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Checked {
    /// What could lose acknowledged writes and was allowed, in words.
    pub(crate) allowed: Vec<String>,
    /// Why the settings of some nodes are not known, in words.
    pub(crate) unknown: Vec<String>,
}

/// Refuses what is unsafe, by name; or logs and returns it, where the user allows it.
pub(crate) async fn check(client: &Client, options: &Options) -> Result<Checked, Error> {
    let (found, mut unknown) = (zone(client, &options.schema).await?, Vec::new());
    let of_nodes = nodes(options, &mut unknown).await;
    Ok(Checked { allowed: judge(found, of_nodes, options.is_unsafe_allowed)?, unknown })
}

/// What the zone and the nodes say, put together.
fn judge(
    mut found: Vec<Unsafe>,
    of_nodes: Result<Vec<Unsafe>, Error>,
    is_unsafe_allowed: bool,
) -> Result<Vec<String>, Error> {
    let unknown = match of_nodes {
        Ok(more) => {
            found.extend(more);
            None
        }
        Err(error @ (Error::NoRest | Error::Rest { .. })) if is_unsafe_allowed => {
            tracing::warn!(%error, "the settings of the grid are not known, which is allowed");
            Some(error.to_string())
        }
        Err(error) => return Err(error),
    };
    if !found.is_empty() && !is_unsafe_allowed {
        return Err(Error::UnsafeSettings { unsafe_settings: found });
    }
    for setting in &found {
        tracing::warn!(%setting, "acknowledged writes can be lost, which is allowed");
    }
    Ok(found.iter().map(ToString::to_string).chain(unknown).collect())
}

/// What only the nodes themselves tell.
async fn nodes(options: &Options, unknown: &mut Vec<String>) -> Result<Vec<Unsafe>, Error> {
    let mut found = Vec::new();
    let asked = ask_nodes(options, unknown).await?;
    let unsynced = asked.iter().filter(|(_, fsync)| *fsync != serde_json::Value::Bool(true));
    found.extend(unsynced.map(|(node, fsync)| Unsafe {
        setting: format!("{FSYNC} of {}", node.address),
        found: fsync.to_string(),
        needed: "true".to_owned(),
    }));
    let (node, _) = asked.first().ok_or(Error::NoRest)?;
    let skew = node.setting("cluster", CLOCK_SKEW).await?;
    if skew.as_u64().is_none_or(|skew| skew > CLOCK_SKEW_MS_MAX) {
        found.push(Unsafe {
            setting: CLOCK_SKEW.to_owned(),
            found: skew.to_string(),
            needed: format!("at most {CLOCK_SKEW_MS_MAX}"),
        });
    }
    Ok(found)
}

/// What each node says of its log. Most must answer: while a minority of them is down, stores start
/// all the same.
async fn ask_nodes<'a>(
    options: &'a Options,
    unknown: &mut Vec<String>,
) -> Result<Vec<(rest::Node<'a>, serde_json::Value)>, Error> {
    let (mut asked, mut silent) = (Vec::new(), None);
    for address in &options.rest {
        let node = rest::Node { address, client: &options.client };
        match node.setting("node", FSYNC).await {
            Ok(fsync) => asked.push((node, fsync)),
            Err(error) => {
                let source: &dyn std::error::Error = &error;
                tracing::warn!(error = source, "a node's settings are not known");
                unknown.push(error.to_string());
                silent = Some(error);
            }
        }
    }
    match silent {
        Some(error) if asked.len() * 2 <= options.rest.len() => Err(error),
        _ => Ok(asked),
    }
}

/// What the zone was made with, and nobody can change later.
async fn zone(client: &Client, zone: &str) -> Result<Vec<Unsafe>, Error> {
    let asked = client.execute(None, ZONE, &[zone.into()]).await;
    let row =
        asked.step("read the zone's settings")?.next().await.step("read the zone's settings")?;
    let value = |at: usize| row.as_ref().and_then(|row| row.values().get(at));
    let replicas = value(0).and_then(Value::as_i64).unwrap_or(0);
    let mode = value(1).and_then(Value::as_str).unwrap_or("unknown");
    let mut found = Vec::from_iter(too_few_replicas(zone, replicas));
    if mode != CONSISTENT {
        found.push(Unsafe {
            setting: format!("CONSISTENCY MODE of zone {zone}"),
            found: mode.to_owned(),
            needed: CONSISTENT.to_owned(),
        });
    }
    Ok(found)
}

/// That a zone has, or is to be made with.
pub(crate) fn too_few_replicas(zone: &str, replicas: i64) -> Option<Unsafe> {
    (replicas < i64::from(REPLICAS_MIN)).then(|| Unsafe {
        setting: format!("REPLICAS of zone {zone}"),
        found: replicas.to_string(),
        needed: format!("at least {REPLICAS_MIN}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_zone_says_is_told_although_no_node_is_asked() {
        let few = || Vec::from_iter(too_few_replicas("W", 1));
        let told = judge(few(), Err(Error::NoRest), true).unwrap();
        assert_eq!(told.len(), 2, "{told:?}");
        assert_eq!(told[0], "`REPLICAS of zone W` is 1, it must be at least 3");
        assert!(matches!(judge(few(), Ok(few()), false), Err(Error::UnsafeSettings { .. })));
        assert!(matches!(judge(few(), Err(Error::NoRest), false), Err(Error::NoRest)));
        assert_eq!(judge(Vec::new(), Ok(Vec::new()), false).unwrap(), Vec::<String>::new());
    }
}
