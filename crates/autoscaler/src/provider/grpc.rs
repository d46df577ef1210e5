//! A provider behind the external gRPC protocol. Owns the connection and speaks both generations of the
//! wire; what it hears it passes on, and decides nothing. What the provider has once called unsupported,
//! of a group or at all, is not asked again.

mod call;
mod connect;
mod convert;
mod durations;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use cloud_api::externalgrpc as wire;
use cloud_api::externalgrpc::cloud_provider_client::CloudProviderClient;
use registry::{GroupId, Instance};
use tokio::sync::OnceCell;
use tonic::transport::Channel;

pub use connect::{ConnectError, Tls};

use self::call::{Call, Caller};
use super::config::Timeouts;
use super::{Error, GroupOptions, ListedGroup, Method, NodeRef, Provider, Template};

/// Larger answers are refused: a listing of ten thousand instances needs a tenth of it.
const MESSAGE_BYTES_MAX: usize = 16 << 20;

type Client = CloudProviderClient<Channel>;

/// How the provider is reached.
#[derive(Clone, Debug)]
pub struct Options {
    /// Host and port.
    pub address: String,
    /// Without: in plain text.
    pub tls: Option<Tls>,
    pub timeouts: Timeouts,
}

/// See the module.
#[derive(Debug)]
pub struct Grpc {
    caller: Caller,
    gpu_label: OnceCell<String>,
    gpu_types: OnceCell<BTreeSet<String>>,
}

// === impl Grpc ===

impl Grpc {
    /// Talks to nobody yet: the first call connects, and so does every call after a lost connection.
    pub fn new(options: Options) -> Result<Self, ConnectError> {
        let channel = connect::lazily(&options)?;
        let client = CloudProviderClient::new(channel)
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX);
        Ok(Self {
            caller: Caller::new(client, options.timeouts),
            gpu_label: OnceCell::new(),
            gpu_types: OnceCell::new(),
        })
    }
}

impl Provider for Grpc {
    async fn refresh(&self) -> Result<(), Error> {
        let call = Call::new(Method::Refresh);
        let ask = |mut client: Client, request| async move { client.refresh(request).await };
        self.caller.read(call, wire::RefreshRequest {}, ask).await.map(drop)
    }

    async fn groups(&self) -> Result<Vec<ListedGroup>, Error> {
        let call = Call::new(Method::NodeGroups);
        let ask = |mut client: Client, request| async move { client.node_groups(request).await };
        let answer = self.caller.read(call, wire::NodeGroupsRequest {}, ask).await?;
        Ok(answer.node_groups.into_iter().map(convert::group).collect())
    }

    async fn group_of(&self, node: &NodeRef) -> Result<Option<GroupId>, Error> {
        let call = Call::new(Method::NodeGroupForNode);
        let ask =
            |mut client: Client, request| async move { client.node_group_for_node(request).await };
        let message = wire::NodeGroupForNodeRequest { node: Some(convert::node(node)) };
        let answer = self.caller.read(call, message, ask).await?;
        let id = answer.node_group.map(|group| group.id);
        Ok(id.filter(|id| !id.is_empty()).map(GroupId))
    }

    async fn target(&self, group: &GroupId) -> Result<i64, Error> {
        let call = Call::of(Method::NodeGroupTargetSize, group);
        let ask = |mut client: Client, request| async move {
            client.node_group_target_size(request).await
        };
        let message = wire::NodeGroupTargetSizeRequest { id: group.0.clone() };
        let answer = self.caller.read(call, message, ask).await?;
        Ok(answer.target_size.into())
    }

    async fn instances(&self, group: &GroupId) -> Result<Vec<Instance>, Error> {
        let call = Call::of(Method::NodeGroupNodes, group);
        let ask =
            |mut client: Client, request| async move { client.node_group_nodes(request).await };
        let message = wire::NodeGroupNodesRequest { id: group.0.clone() };
        let answer = self.caller.read(call, message, ask).await?;
        Ok(answer.instances.into_iter().map(convert::instance).collect())
    }

    async fn template(&self, group: &GroupId) -> Result<Option<Template>, Error> {
        let call = Call::of(Method::NodeGroupTemplateNodeInfo, group);
        let ask = |mut client: Client, request| async move {
            client.node_group_template_node_info(request).await
        };
        let message = wire::NodeGroupTemplateNodeInfoRequest { id: group.0.clone() };
        convert::template(self.caller.read(call, message, ask).await?)
    }

    async fn options(
        &self,
        group: &GroupId,
        defaults: &GroupOptions,
    ) -> Result<GroupOptions, Error> {
        let call = Call::of(Method::NodeGroupGetOptions, group);
        let ask = |mut client: Client, request| async move {
            client.node_group_get_options(request).await
        };
        let message = wire::NodeGroupAutoscalingOptionsRequest {
            id: group.0.clone(),
            defaults: Some(durations::encode(defaults)),
        };
        let answer = self.caller.read(call, message, ask).await?;
        let answer = answer.node_group_autoscaling_options;
        Ok(answer.map_or(*defaults, |answer| durations::decode(&answer, defaults)))
    }

    async fn gpu_label(&self) -> Result<String, Error> {
        let ask = |mut client: Client, request| async move { client.gpu_label(request).await };
        let read = || async {
            let call = Call::new(Method::GpuLabel);
            let answer = self.caller.read(call, wire::GpuLabelRequest {}, ask).await?;
            Ok(answer.label)
        };
        self.gpu_label.get_or_try_init(read).await.cloned()
    }

    async fn gpu_types(&self) -> Result<BTreeSet<String>, Error> {
        let ask = |mut client: Client, request| async move {
            client.get_available_gpu_types(request).await
        };
        let read = || async {
            let call = Call::new(Method::GetAvailableGpuTypes);
            let message = wire::GetAvailableGpuTypesRequest {};
            let answer = self.caller.read(call, message, ask).await?;
            Ok(BTreeMap::into_keys(answer.gpu_types).collect())
        };
        self.gpu_types.get_or_try_init(read).await.cloned()
    }

    async fn increase(&self, group: &GroupId, by: NonZeroU32) -> Result<(), Error> {
        let call = Call::of(Method::NodeGroupIncreaseSize, group);
        let delta = convert::delta(call.method, by)?;
        let message = wire::NodeGroupIncreaseSizeRequest { delta, id: group.0.clone() };
        let ask = |mut client: Client, request| async move {
            client.node_group_increase_size(request).await
        };
        self.caller.mutate(call, message, ask).await
    }

    async fn decrease(&self, group: &GroupId, by: NonZeroU32) -> Result<(), Error> {
        let call = Call::of(Method::NodeGroupDecreaseTargetSize, group);
        let delta = -convert::delta(call.method, by)?;
        let message = wire::NodeGroupDecreaseTargetSizeRequest { delta, id: group.0.clone() };
        let ask = |mut client: Client, request| async move {
            client.node_group_decrease_target_size(request).await
        };
        self.caller.mutate(call, message, ask).await
    }

    async fn delete(&self, group: &GroupId, nodes: &[NodeRef]) -> Result<(), Error> {
        let call = Call::of(Method::NodeGroupDeleteNodes, group);
        let nodes = nodes.iter().map(convert::node).collect();
        let message = wire::NodeGroupDeleteNodesRequest { nodes, id: group.0.clone() };
        let ask = |mut client: Client, request| async move {
            client.node_group_delete_nodes(request).await
        };
        self.caller.mutate(call, message, ask).await
    }

    fn unsupported(&self, group: &GroupId) -> Vec<Method> {
        self.caller.unsupported(group)
    }

    async fn cleanup(&self) -> Result<(), Error> {
        let ask = |mut client: Client, request| async move { client.cleanup(request).await };
        self.caller.mutate(Call::new(Method::Cleanup), wire::CleanupRequest {}, ask).await
    }
}
