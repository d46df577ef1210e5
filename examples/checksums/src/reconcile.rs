//! One Secret and its checksums. What to write is decided by [`plan`]; nothing is written that is
//! there already.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::runtime::controller::Action;
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use sharding::instance::Shard;

use crate::history::{History, Work};

/// A Secret is looked at this often even if nothing is heard of it.
const LOOK_EVERY: Duration = Duration::from_secs(10 * 60);

pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) shard: Shard,
    /// As if there were more to do.
    pub(crate) delay: Duration,
    pub(crate) history: Option<History>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("cannot read ConfigMap `{name}`")]
    Read {
        name: String,
        #[source]
        source: Box<kube::Error>,
    },
    #[error("cannot write ConfigMap `{name}`")]
    Write {
        name: String,
        #[source]
        source: Box<kube::Error>,
    },
    #[error("ConfigMap `{name}` belongs to somebody else")]
    NotOurs { name: String },
    #[error("the history cannot be written")]
    History(#[source] std::io::Error),
}

/// What is to be done about the ConfigMap of a Secret.
#[derive(Debug, PartialEq)]
enum Plan {
    Create(Box<ConfigMap>),
    /// Patch it, if it is still as it was found.
    Replace(Value),
    Nothing,
    /// There is one that is not this Secret's.
    Refuse,
}

pub(crate) async fn reconcile(secret: Arc<Secret>, context: Arc<Context>) -> Result<Action, Error> {
    // Dropped last: the end is told when nothing follows, however it comes.
    let begun = context.history.as_ref().map(|history| history.begin(&secret)).transpose();
    let work = begun.map_err(Error::History)?;
    tokio::time::sleep(context.delay).await;
    work.as_ref().map_or(Ok(()), Work::step).map_err(Error::History)?;

    let name = format!("{}-checksum", secret.name_any());
    let namespace = secret.namespace().unwrap_or_default();
    let config_maps: Api<ConfigMap> = Api::namespaced(context.client.clone(), &namespace);
    let found = config_maps.get_opt(&name).await;
    let found =
        found.map_err(|source| Error::Read { name: name.clone(), source: Box::new(source) })?;
    let written = match plan(&secret, &name, found.as_ref()) {
        Plan::Create(mut new) => {
            context.shard.stamp(&mut new.metadata);
            config_maps.create(&PostParams::default(), &new).await.map(|_| ())
        }
        Plan::Replace(patch) => {
            let patch = Patch::Merge(patch);
            config_maps.patch(&name, &PatchParams::default(), &patch).await.map(|_| ())
        }
        Plan::Nothing => Ok(()),
        Plan::Refuse => return Err(Error::NotOurs { name }),
    };
    written.map_err(|source| Error::Write { name, source: Box::new(source) })?;
    Ok(Action::requeue(LOOK_EVERY))
}

fn plan(secret: &Secret, name: &str, found: Option<&ConfigMap>) -> Plan {
    let data = checksums(secret);
    let Some(found) = found else {
        let metadata = ObjectMeta {
            name: Some(name.to_owned()),
            namespace: secret.namespace(),
            owner_references: secret.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        };
        let new = ConfigMap { metadata, data: Some(data), ..ConfigMap::default() };
        return Plan::Create(Box::new(new));
    };
    let is_ours =
        found.owner_references().iter().any(|owner| Some(&owner.uid) == secret.uid().as_ref());
    let current = found.data.clone().unwrap_or_default();
    if !is_ours {
        return Plan::Refuse;
    }
    if current == data {
        return Plan::Nothing;
    }
    Plan::Replace(json!({
        "metadata": {"resourceVersion": found.metadata.resource_version},
        "data": merged(current, data),
    }))
}

/// A merge removes nothing by itself: keys that are no more are named.
fn merged(
    before: BTreeMap<String, String>,
    data: BTreeMap<String, String>,
) -> BTreeMap<String, Option<String>> {
    let removed = before.into_keys().map(|key| (key, None));
    let kept = data.into_iter().map(|(key, value)| (key, Some(value)));
    removed.chain(kept).collect()
}

fn checksums(secret: &Secret) -> BTreeMap<String, String> {
    let values = secret.data.iter().flatten();
    values.map(|(key, value)| (key.clone(), hex(&Sha256::digest(&value.0)))).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String takes everything");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(uid: &str, value: &str) -> Secret {
        let metadata = json!({"name": "door", "namespace": "shop", "uid": uid});
        let mut secret: Secret = serde_json::from_value(json!({ "metadata": metadata })).unwrap();
        let value = k8s_openapi::ByteString(value.as_bytes().to_vec());
        secret.data = Some([("key".to_owned(), value)].into());
        secret
    }

    #[test]
    fn a_config_map_is_made_once_and_then_kept() {
        let secret_1 = secret("u1", "abc");
        let Plan::Create(made) = plan(&secret_1, "door-checksum", None) else { panic!("none") };
        // The test vector of FIPS 180-2.
        let sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(made.data.as_ref().unwrap()["key"], sum);
        assert_eq!(made.owner_references()[0].controller, Some(true));
        assert_eq!(plan(&secret_1, "door-checksum", Some(&made)), Plan::Nothing);
        let changed = plan(&secret("u1", "abd"), "door-checksum", Some(&made));
        assert!(matches!(changed, Plan::Replace(patch) if patch["data"]["key"] != sum));
        assert_eq!(plan(&secret("u2", "abc"), "door-checksum", Some(&made)), Plan::Refuse);
    }

    #[test]
    fn keys_that_are_no_more_are_removed() {
        let before = [("old".to_owned(), "1".to_owned())].into();
        let merged = merged(before, [("new".to_owned(), "2".to_owned())].into());
        assert_eq!(json!(merged), json!({"old": null, "new": "2"}));
    }
}
