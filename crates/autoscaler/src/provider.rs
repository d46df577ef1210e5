//! The way to whoever provides machines: what can be asked, and what an answer or its absence means.
//! Decides nothing; what was read becomes [`registry::Facts`].

mod absent;
pub mod config;
mod error;
pub mod grpc;
mod memberships;
mod options;
mod reader;
mod template;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use cloud_api::fake_node;
use registry::{GroupId, Instance, InstanceId, NodeName};

pub use absent::Absent;
pub use error::{Error, Method};
pub use options::GroupOptions;
pub use reader::Reader;
pub use template::{Template, TemplateTaint};

/// A cloud, as far as an autoscaler needs one.
///
/// What every implementation owes its caller:
///
/// 1. A mutation that returns `Ok` was carried out; [`Error::Rejected`] and [`Error::Unsupported`] were
///    answered by the provider; everything else is [`Error::Unknown`], and may have been carried out.
/// 2. No mutation is sent twice. Reads are, and change nothing.
/// 3. A failed listing is an error; an empty one is a listing.
/// 4. Every call ends, answered or not, within a bound.
pub trait Provider: Send + Sync {
    /// Asks the provider to look at its cloud anew; first in every iteration.
    fn refresh(&self) -> impl Future<Output = Result<(), Error>> + Send;

    fn groups(&self) -> impl Future<Output = Result<Vec<ListedGroup>, Error>> + Send;

    /// `None`: the node is in no group.
    fn group_of(
        &self,
        node: &NodeRef,
    ) -> impl Future<Output = Result<Option<GroupId>, Error>> + Send;

    /// How many instances the group is meant to have.
    fn target(&self, group: &GroupId) -> impl Future<Output = Result<i64, Error>> + Send;

    fn instances(
        &self,
        group: &GroupId,
    ) -> impl Future<Output = Result<Vec<Instance>, Error>> + Send;

    /// What a new node of the group would be. Optional.
    fn template(
        &self,
        group: &GroupId,
    ) -> impl Future<Output = Result<Option<Template>, Error>> + Send;

    /// What the group sets for itself, where it differs from `defaults`. Optional.
    fn options(
        &self,
        group: &GroupId,
        defaults: &GroupOptions,
    ) -> impl Future<Output = Result<GroupOptions, Error>> + Send;

    /// The label of nodes that have a GPU.
    fn gpu_label(&self) -> impl Future<Output = Result<String, Error>> + Send;

    fn gpu_types(&self) -> impl Future<Output = Result<BTreeSet<String>, Error>> + Send;

    /// Raises the target.
    fn increase(
        &self,
        group: &GroupId,
        by: NonZeroU32,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Lowers the target by what it lacks in instances; no instance is deleted.
    fn decrease(
        &self,
        group: &GroupId,
        by: NonZeroU32,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Deletes these nodes and lowers the target by as many.
    fn delete(
        &self,
        group: &GroupId,
        nodes: &[NodeRef],
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// What it has said it cannot do for this group, as far as it is remembered here.
    fn unsupported(&self, _group: &GroupId) -> Vec<Method> {
        Vec::new()
    }

    /// Nothing more will be asked.
    fn cleanup(&self) -> impl Future<Output = Result<(), Error>> + Send;
}

/// A group in the provider's listing, not checked yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedGroup {
    pub id: GroupId,
    pub min: i64,
    pub max: i64,
    /// For people.
    pub debug: String,
}

/// What names a node to the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRef {
    pub name: NodeName,
    pub provider_id: String,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
}

// === impl NodeRef ===

impl NodeRef {
    /// An instance whose Node never came.
    #[must_use]
    pub fn unregistered(instance: &InstanceId) -> Self {
        Self::of_instance(instance, fake_node::UNREGISTERED)
    }

    /// An instance that could not be created.
    #[must_use]
    pub fn create_failed(instance: &InstanceId) -> Self {
        Self::of_instance(instance, fake_node::CREATE_ERROR)
    }

    fn of_instance(instance: &InstanceId, reason: &str) -> Self {
        Self {
            name: NodeName(instance.0.clone()),
            provider_id: instance.0.clone(),
            labels: BTreeMap::new(),
            annotations: BTreeMap::from([(fake_node::REASON.to_owned(), reason.to_owned())]),
        }
    }
}
