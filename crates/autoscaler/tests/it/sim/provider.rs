//! The simulated cloud as the loop's provider: every call that changes something is noted, and the
//! process may die before it and after it.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::Arc;

use autoscaler::provider::{Error, GroupOptions, ListedGroup, NodeRef, Provider, Template};
use cloud_api::fake_node;
use parking_lot::Mutex;
use registry::{GroupId, Instance};
use simcloud::handle::Handle;

use super::cluster::{Shared, point};

pub(crate) struct Machines {
    pub(crate) handle: Handle,
    pub(crate) shared: Arc<Mutex<Shared>>,
}

// === impl Machines ===

impl Machines {
    /// What is refused has not happened; what is not answered may have.
    async fn change(
        &self,
        what: String,
        call: impl Future<Output = Result<(), Error>>,
    ) -> Result<(), Error> {
        {
            let mut shared = self.shared.lock();
            let next = shared.points + 1;
            shared.calling.insert(next);
        }
        point(&self.shared).await;
        let answer = call.await;
        if !matches!(answer, Err(Error::Rejected { .. } | Error::Unsupported { .. })) {
            self.shared.lock().note(what);
        }
        point(&self.shared).await;
        answer
    }
}

impl Provider for Machines {
    async fn refresh(&self) -> Result<(), Error> {
        self.handle.refresh().await
    }

    async fn groups(&self) -> Result<Vec<ListedGroup>, Error> {
        self.handle.groups().await
    }

    async fn group_of(&self, node: &NodeRef) -> Result<Option<GroupId>, Error> {
        self.handle.group_of(node).await
    }

    async fn target(&self, group: &GroupId) -> Result<i64, Error> {
        self.shared.lock().read();
        self.handle.target(group).await
    }

    async fn instances(&self, group: &GroupId) -> Result<Vec<Instance>, Error> {
        self.handle.instances(group).await
    }

    async fn template(&self, group: &GroupId) -> Result<Option<Template>, Error> {
        self.handle.template(group).await
    }

    async fn options(
        &self,
        group: &GroupId,
        defaults: &GroupOptions,
    ) -> Result<GroupOptions, Error> {
        self.handle.options(group, defaults).await
    }

    async fn gpu_label(&self) -> Result<String, Error> {
        self.handle.gpu_label().await
    }

    async fn gpu_types(&self) -> Result<BTreeSet<String>, Error> {
        self.handle.gpu_types().await
    }

    async fn increase(&self, group: &GroupId, by: NonZeroU32) -> Result<(), Error> {
        self.change(format!("increase {group} {by}"), self.handle.increase(group, by)).await
    }

    async fn decrease(&self, group: &GroupId, by: NonZeroU32) -> Result<(), Error> {
        self.change(format!("decrease {group} {by}"), self.handle.decrease(group, by)).await
    }

    async fn delete(&self, group: &GroupId, nodes: &[NodeRef]) -> Result<(), Error> {
        let words: Vec<String> = nodes.iter().map(words).collect();
        self.change(format!("delete {}", words.join(" ")), self.handle.delete(group, nodes)).await
    }

    async fn cleanup(&self) -> Result<(), Error> {
        self.handle.cleanup().await
    }
}

/// A node by its name; what never had one, by the last part of its id and why it has none.
fn words(node: &NodeRef) -> String {
    match node.annotations.get(fake_node::REASON) {
        Some(reason) => {
            format!("{} {reason}", node.provider_id.rsplit('/').next().unwrap_or_default())
        }
        None => node.name.to_string(),
    }
}
