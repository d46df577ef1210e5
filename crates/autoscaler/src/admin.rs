//! What is kept in the cluster, for those who ask when nobody runs. Reads; changes nothing.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kubekit::client::{self, Cluster};
use kubekit::failure::Failure;
use serde_json::Value;

use crate::options::Options;

/// Parts of a saved state in which a name may stand.
const PLACES: [&str; 5] = ["groups", "nodes", "instances", "deletions", "unneeded"];

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no way to a cluster")]
    Client(#[source] client::Error),
    #[error("cannot read the ConfigMap {name}")]
    Read {
        name: String,
        #[source]
        source: Failure,
    },
    #[error("there is no ConfigMap {name} in {namespace}")]
    Absent { name: String, namespace: String },
    #[error("the ConfigMap {name} is not as it should be")]
    Unreadable { name: String },
}

/// The status as it was last published, in YAML.
pub async fn saved_status(cluster: &Cluster, options: &Options) -> Result<String, Error> {
    read(cluster, &options.namespace, options.status_name(), "status").await
}

/// What the saved state says of a name; nothing if it is not in there.
pub async fn saved_account(
    cluster: &Cluster,
    options: &Options,
    of: &str,
) -> Result<Option<Value>, Error> {
    let name = options.state_name();
    let text = read(cluster, &options.namespace, name.clone(), "state").await?;
    let state: Value = serde_json::from_str(&text).map_err(|_syntax| Error::Unreadable { name })?;
    let found: serde_json::Map<String, Value> = PLACES
        .iter()
        .filter_map(|place| {
            Some(((*place).to_owned(), state.get("state")?.get(place)?.get(of)?.clone()))
        })
        .collect();
    Ok((!found.is_empty()).then_some(Value::Object(found)))
}

async fn read(
    cluster: &Cluster,
    namespace: &str,
    name: String,
    key: &str,
) -> Result<String, Error> {
    let client = cluster.client().map_err(Error::Client)?;
    let maps: Api<ConfigMap> = Api::namespaced(client, namespace);
    let found = match maps.get_opt(&name).await {
        Ok(found) => found,
        Err(error) => return Err(Error::Read { name, source: error.into() }),
    };
    let Some(map) = found else {
        return Err(Error::Absent { name, namespace: namespace.to_owned() });
    };
    map.data.and_then(|mut data| data.remove(key)).ok_or(Error::Unreadable { name })
}
