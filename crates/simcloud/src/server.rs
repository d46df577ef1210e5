//! The cloud behind the external gRPC protocol. Owns the wire; what is done and answered is the
//! cloud's.

mod incoming;
mod reply;
mod tls;

use std::num::NonZeroU32;
use std::time::Duration;

use autoscaler::provider::NodeRef;
use cloud_api::externalgrpc as wire;
use cloud_api::externalgrpc::cloud_provider_server::{CloudProvider, CloudProviderServer};
use jiff::Timestamp;
use registry::{GroupId, NodeName};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

pub use tls::{Tls, TlsError};

use self::tls::Handshake;
use crate::core::{Cloud, Refusal};
use crate::handle::Handle;
use crate::scenario::Code;

/// As much as a client accepts.
const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// How long an answer is kept back; no client waits longer.
const NO_ANSWER: Duration = Duration::from_mins(15);

/// A cloud that is to be served.
pub struct Server {
    handle: Handle,
    listener: TcpListener,
    handshake: Option<Handshake>,
}

#[derive(Debug, thiserror::Error)]
#[error("the provider's service ended")]
pub struct Error(#[source] tonic::transport::Error);

/// What answers the calls.
struct Calls {
    handle: Handle,
    /// Nobody is kept waiting for an answer then.
    shutdown: CancellationToken,
}

// === impl Server ===

impl Server {
    /// In plain text, unless there are certificates.
    pub fn new(handle: Handle, listener: TcpListener, tls: Option<&Tls>) -> Result<Self, TlsError> {
        let handshake = tls.map(Handshake::new).transpose()?;
        Ok(Self { handle, listener, handshake })
    }

    /// Serves until `shutdown`.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), Error> {
        let calls = Calls { handle: self.handle.clone(), shutdown: shutdown.clone() };
        let service = CloudProviderServer::new(calls)
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX);
        let router = tonic::transport::Server::builder().add_service(service);
        let signal = shutdown.cancelled_owned();
        let served = match self.handshake {
            None => {
                let incoming = incoming::plain(self.listener);
                router.serve_with_incoming_shutdown(incoming, signal).await
            }
            Some(handshake) => {
                let incoming = incoming::encrypted(self.listener, handshake, self.handle);
                router.serve_with_incoming_shutdown(incoming, signal).await
            }
        };
        served.map_err(Error)
    }
}

// === impl Calls ===

impl Calls {
    async fn answer<T, A>(
        &self,
        call: impl FnOnce(&mut Cloud, Timestamp) -> Result<T, Refusal>,
        reply: impl FnOnce(T) -> A,
    ) -> Result<Response<A>, Status> {
        match self.handle.with(call) {
            Ok(answer) => Ok(Response::new(reply(answer))),
            Err(Refusal::Unimplemented) => Err(Status::unimplemented("scripted to be so")),
            Err(Refusal::Failed { code, message }) => Err(Status::new(grpc_code(code), message)),
            Err(Refusal::NoAnswer) => {
                tokio::select! {
                    () = tokio::time::sleep(NO_ANSWER) => {}
                    () = self.shutdown.cancelled() => {}
                }
                Err(Status::deadline_exceeded("scripted to be late"))
            }
        }
    }
}

#[tonic::async_trait]
impl CloudProvider for Calls {
    async fn node_groups(
        &self,
        _request: Request<wire::NodeGroupsRequest>,
    ) -> Result<Response<wire::NodeGroupsResponse>, Status> {
        let reply = |groups: Vec<_>| wire::NodeGroupsResponse {
            node_groups: groups.into_iter().map(reply::group).collect(),
        };
        self.answer(Cloud::groups, reply).await
    }

    async fn node_group_for_node(
        &self,
        request: Request<wire::NodeGroupForNodeRequest>,
    ) -> Result<Response<wire::NodeGroupForNodeResponse>, Status> {
        let node = node(request.into_inner().node.unwrap_or_default());
        let reply = |group: Option<GroupId>| wire::NodeGroupForNodeResponse {
            node_group: Some(reply::membership(group)),
        };
        self.answer(|cloud, now| cloud.group_of(now, &node), reply).await
    }

    async fn pricing_node_price(
        &self,
        _request: Request<wire::PricingNodePriceRequest>,
    ) -> Result<Response<wire::PricingNodePriceResponse>, Status> {
        Err(Status::unimplemented("this cloud is free"))
    }

    async fn pricing_pod_price(
        &self,
        _request: Request<wire::PricingPodPriceRequest>,
    ) -> Result<Response<wire::PricingPodPriceResponse>, Status> {
        Err(Status::unimplemented("this cloud is free"))
    }

    async fn gpu_label(
        &self,
        _request: Request<wire::GpuLabelRequest>,
    ) -> Result<Response<wire::GpuLabelResponse>, Status> {
        self.answer(Cloud::gpu_label, |label| wire::GpuLabelResponse { label }).await
    }

    async fn get_available_gpu_types(
        &self,
        _request: Request<wire::GetAvailableGpuTypesRequest>,
    ) -> Result<Response<wire::GetAvailableGpuTypesResponse>, Status> {
        self.answer(Cloud::gpu_types, reply::gpu_types).await
    }

    async fn cleanup(
        &self,
        _request: Request<wire::CleanupRequest>,
    ) -> Result<Response<wire::CleanupResponse>, Status> {
        self.answer(Cloud::cleanup, |()| wire::CleanupResponse {}).await
    }

    async fn refresh(
        &self,
        _request: Request<wire::RefreshRequest>,
    ) -> Result<Response<wire::RefreshResponse>, Status> {
        self.answer(Cloud::refresh, |()| wire::RefreshResponse {}).await
    }

    async fn node_group_target_size(
        &self,
        request: Request<wire::NodeGroupTargetSizeRequest>,
    ) -> Result<Response<wire::NodeGroupTargetSizeResponse>, Status> {
        let group = GroupId(request.into_inner().id);
        let reply = |target: u32| wire::NodeGroupTargetSizeResponse {
            target_size: i32::try_from(target).unwrap_or(i32::MAX),
        };
        self.answer(|cloud, now| cloud.target(now, &group), reply).await
    }

    async fn node_group_increase_size(
        &self,
        request: Request<wire::NodeGroupIncreaseSizeRequest>,
    ) -> Result<Response<wire::NodeGroupIncreaseSizeResponse>, Status> {
        let request = request.into_inner();
        let (group, by) = (GroupId(request.id), above_zero(request.delta)?);
        let call = |cloud: &mut Cloud, now| cloud.increase(now, &group, by);
        self.answer(call, |()| wire::NodeGroupIncreaseSizeResponse {}).await
    }

    async fn node_group_delete_nodes(
        &self,
        request: Request<wire::NodeGroupDeleteNodesRequest>,
    ) -> Result<Response<wire::NodeGroupDeleteNodesResponse>, Status> {
        let request = request.into_inner();
        let group = GroupId(request.id);
        let nodes: Vec<NodeRef> = request.nodes.into_iter().map(node).collect();
        let call = |cloud: &mut Cloud, now| cloud.delete(now, &group, &nodes);
        self.answer(call, |()| wire::NodeGroupDeleteNodesResponse {}).await
    }

    async fn node_group_decrease_target_size(
        &self,
        request: Request<wire::NodeGroupDecreaseTargetSizeRequest>,
    ) -> Result<Response<wire::NodeGroupDecreaseTargetSizeResponse>, Status> {
        let request = request.into_inner();
        let (group, by) = (GroupId(request.id), above_zero(request.delta.saturating_neg())?);
        let call = |cloud: &mut Cloud, now| cloud.decrease(now, &group, by);
        self.answer(call, |()| wire::NodeGroupDecreaseTargetSizeResponse {}).await
    }

    async fn node_group_nodes(
        &self,
        request: Request<wire::NodeGroupNodesRequest>,
    ) -> Result<Response<wire::NodeGroupNodesResponse>, Status> {
        let group = GroupId(request.into_inner().id);
        let reply = |instances: Vec<_>| wire::NodeGroupNodesResponse {
            instances: instances.into_iter().map(reply::instance).collect(),
        };
        self.answer(|cloud, now| cloud.instances(now, &group), reply).await
    }

    async fn node_group_template_node_info(
        &self,
        request: Request<wire::NodeGroupTemplateNodeInfoRequest>,
    ) -> Result<Response<wire::NodeGroupTemplateNodeInfoResponse>, Status> {
        let group = GroupId(request.into_inner().id);
        let call = |cloud: &mut Cloud, now| {
            let template = cloud.template(now, &group)?;
            Ok((template, cloud.generation(now)))
        };
        self.answer(call, |(template, generation)| reply::template(template, generation)).await
    }

    async fn node_group_get_options(
        &self,
        request: Request<wire::NodeGroupAutoscalingOptionsRequest>,
    ) -> Result<Response<wire::NodeGroupAutoscalingOptionsResponse>, Status> {
        let request = request.into_inner();
        let group = GroupId(request.id);
        let call = |cloud: &mut Cloud, now| {
            let options = cloud.options(now, &group)?;
            Ok((options, cloud.generation(now)))
        };
        let sent = request.defaults.unwrap_or_default();
        let reply = |(own, generation)| wire::NodeGroupAutoscalingOptionsResponse {
            node_group_autoscaling_options: Some(reply::options(sent, &own, generation)),
        };
        self.answer(call, reply).await
    }
}

fn node(node: wire::ExternalGrpcNode) -> NodeRef {
    let wire::ExternalGrpcNode { provider_id, name, labels, annotations } = node;
    NodeRef { name: NodeName(name), provider_id, labels, annotations }
}

fn above_zero(delta: i32) -> Result<NonZeroU32, Status> {
    let delta = u32::try_from(delta).ok().and_then(NonZeroU32::new);
    delta.ok_or_else(|| Status::invalid_argument("the size would not change that way"))
}

fn grpc_code(code: Code) -> tonic::Code {
    match code {
        Code::InvalidArgument => tonic::Code::InvalidArgument,
        Code::NotFound => tonic::Code::NotFound,
        Code::FailedPrecondition => tonic::Code::FailedPrecondition,
        Code::ResourceExhausted => tonic::Code::ResourceExhausted,
        Code::Internal => tonic::Code::Internal,
        Code::Unavailable => tonic::Code::Unavailable,
    }
}
