//! Nodes, of which the metadata is enough: a full node is five times as large.

use k8s_openapi::{api::core::v1::Node, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{
    Api, Client,
    api::{ListParams, Patch, PatchParams, WatchParams},
};
use serde_json::Value;

use super::{
    Changes, Error, Kind, Listing, Verb, answer, changes::changes, convert, listing::Pages,
};
use crate::core::object::LiveNode;

/// The nodes of the cluster.
#[derive(Clone)]
pub struct Nodes {
    api: Api<Node>,
}

// === impl Nodes ===

impl Nodes {
    pub(super) fn new(client: Client) -> Self {
        Self { api: Api::all(client) }
    }

    /// By quorum read: absence decides, so no cache will do.
    pub async fn get(&self, name: &str) -> Result<Option<LiveNode>, Error> {
        let about = about(name);
        match answer(Verb::Read, &about, self.api.get_metadata(name)).await {
            Ok(node) => live(Verb::Read, &about, node.metadata).map(Some),
            Err(error) if error.kind == Kind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All nodes, by quorum read.
    pub async fn list(&self) -> Result<Listing<LiveNode>, Error> {
        let mut pages = Pages::new();
        while let Some(params) = pages.next() {
            let page = answer(Verb::List, "Nodes", self.api.list_metadata(&params)).await?;
            let nodes = page.items.into_iter().map(|item| live(Verb::List, "Nodes", item.metadata));
            pages.add(nodes.collect::<Result<Vec<_>, _>>()?, page.metadata);
        }
        Ok(pages.into_listing())
    }

    /// Where the server is now, by quorum read.
    pub async fn position(&self) -> Result<String, Error> {
        let params = ListParams::default().limit(1);
        let page = answer(Verb::List, "Nodes", self.api.list_metadata(&params)).await?;
        Ok(page.metadata.resource_version.unwrap_or_default())
    }

    /// All changes after `rv`. Never without one: the server would report every node as added.
    pub async fn watch(&self, rv: &str) -> Result<Changes<ObjectMeta>, Error> {
        debug_assert!(!rv.is_empty() && rv != "0", "every node would be reported as added");
        let params = WatchParams::default();
        let events = answer(Verb::Watch, "Nodes", self.api.watch_metadata(&params, rv)).await?;
        Ok(changes("Nodes".to_owned(), events, |node| node.metadata))
    }

    /// A JSON merge patch, which carries its guards itself and leaves alone what it does not name,
    /// fields that this build knows nothing of included.
    pub async fn patch(&self, name: &str, patch: &Value) -> Result<LiveNode, Error> {
        let (about, params, patch) = (about(name), PatchParams::default(), Patch::Merge(patch));
        let patched = self.api.patch_metadata(name, &params, &patch);
        let node = answer(Verb::Patch, &about, patched).await?;
        live(Verb::Patch, &about, node.metadata)
    }
}

fn live(verb: Verb, about: &str, metadata: ObjectMeta) -> Result<LiveNode, Error> {
    convert::live_node(metadata).map_err(|source| Error::unreadable(verb, about, source))
}

fn about(name: &str) -> String {
    format!("Node {name}")
}
