//! The cloud's kubelets on a real API server: looks at what is there, asks the cloud what they would
//! write, and writes it. A write that fails is planned again at the next look.

mod objects;

use std::collections::BTreeMap;
use std::convert::Infallible;

use futures::{StreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use kubekit::failure::Failure;
use registry::NodeName;
use serde_json::Value;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::core::GROUP_LABEL;
use crate::core::kubelet::{Command, PodName, Seen};
use crate::handle::Handle;

/// Writes under way at once.
const WRITES_MAX: usize = 16;

/// Where kubelets keep their Leases.
const LEASES: &str = "kube-node-lease";

/// Who we are to the API server's memory of who wrote what.
const MANAGER: &str = "windlass-simcloud";

pub struct Kubelet {
    handle: Handle,
    client: Client,
    nodes: Api<Node>,
    pods: Api<Pod>,
    leases: Api<Lease>,
    renewals: BTreeMap<NodeName, Timestamp>,
}

#[derive(Debug, thiserror::Error)]
#[error("the API server cannot be looked at")]
struct LookError(#[source] Failure);

/// What a command came to.
struct Written {
    command: Command,
    result: Result<(), Failure>,
}

// === impl Kubelet ===

impl Kubelet {
    #[must_use]
    pub fn new(handle: Handle, client: Client) -> Self {
        Self {
            nodes: Api::all(client.clone()),
            pods: Api::all(client.clone()),
            leases: Api::namespaced(client.clone(), LEASES),
            renewals: BTreeMap::new(),
            client,
            handle,
        }
    }

    /// Acts at every tick until `shutdown`.
    pub async fn run(mut self, shutdown: CancellationToken) {
        tokio::select! {
            () = shutdown.cancelled() => {}
            never = self.tick() => match never {},
        }
    }

    async fn tick(&mut self) -> Infallible {
        let mut ticks = interval(self.handle.with(|cloud, _| cloud.scenario().tick));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if let Err(error) = self.act().await {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "kubelets do nothing until it can");
            }
        }
    }

    async fn act(&mut self) -> Result<(), LookError> {
        let seen = self.look().await.map_err(|error| LookError(error.into()))?;
        let (commands, now) = self.handle.with(|cloud, now| (cloud.plan(&seen), now));
        let this = &*self;
        let writes: Vec<_> = commands.into_iter().map(|it| this.write(it, now)).collect();
        let written: Vec<Written> = stream::iter(writes).buffered(WRITES_MAX).collect().await;
        for Written { command, result } in written {
            match result {
                Ok(()) => self.on_written(command, now),
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(?command, error, "a kubelet could not write");
                }
            }
        }
        Ok(())
    }

    async fn look(&self) -> Result<Seen, kube::Error> {
        let ours = ListParams::default().labels(GROUP_LABEL);
        let bound = ListParams::default().fields("spec.nodeName!=");
        let (nodes, pods) = tokio::try_join!(self.nodes.list(&ours), self.pods.list(&bound))?;
        Ok(Seen {
            nodes: nodes.items.iter().filter_map(objects::seen_node).collect(),
            pods: pods.items.iter().filter_map(objects::seen_pod).collect(),
            renewals: self.renewals.clone(),
        })
    }

    fn on_written(&mut self, command: Command, now: Timestamp) {
        match command {
            Command::Renew(node) => {
                self.renewals.insert(node, now);
            }
            Command::Register(node) => tracing::info!(%node, "a Node has registered"),
            Command::Remove(node) => {
                self.renewals.remove(&node);
                tracing::info!(%node, "a Node is gone");
            }
            Command::Report { node, ready, .. } => {
                tracing::info!(%node, ?ready, "a Node has changed");
            }
            Command::LiftTaint(_) | Command::Run(_) | Command::End(_) => {}
        }
    }

    async fn write(&self, command: Command, now: Timestamp) -> Written {
        let result = match &command {
            Command::Register(node) => self.register(node, now).await,
            Command::Report { node, ready, since } => {
                let status = objects::report(*ready, *since, now);
                self.patch_status(node, status).await
            }
            Command::LiftTaint(node) => self.lift_taint(node).await,
            Command::Renew(node) => self.renew(node, now).await,
            Command::Remove(node) => {
                let ended = self.nodes.delete(&node.0, &DeleteParams::default()).await;
                gone_is_gone(ended.map(drop))
            }
            Command::Run(pod) => self.run_pod(pod, now).await,
            Command::End(pod) => {
                let at_once = DeleteParams::default().grace_period(0);
                gone_is_gone(self.pods_in(pod).delete(&pod.name, &at_once).await.map(drop))
            }
        };
        Written { result: result.map_err(Failure::from), command }
    }

    async fn register(&self, name: &NodeName, now: Timestamp) -> Result<(), kube::Error> {
        let object = self.handle.with(|cloud, _| {
            let node = cloud.nodes().find(|node| node.name == *name)?;
            Some(objects::node(node, &cloud.template_of(node)?, now))
        });
        // It may have gone since the plan was made.
        let Some(object) = object else { return Ok(()) };
        self.nodes.create(&PostParams::default(), &object).await.map(drop)
    }

    async fn patch_status(&self, node: &NodeName, status: Value) -> Result<(), kube::Error> {
        let patch = Patch::Strategic(status);
        self.nodes.patch_status(&node.0, &PatchParams::default(), &patch).await.map(drop)
    }

    /// Taints are one value to the API server, so they are written as they were read but for this one.
    async fn lift_taint(&self, node: &NodeName) -> Result<(), kube::Error> {
        let Some(read) = self.nodes.get_opt(&node.0).await? else { return Ok(()) };
        let patch = Patch::Merge(objects::without_not_ready_taint(&read));
        self.nodes.patch(&node.0, &PatchParams::default(), &patch).await.map(drop)
    }

    async fn renew(&self, node: &NodeName, now: Timestamp) -> Result<(), kube::Error> {
        let patch = Patch::Apply(objects::lease(node, now));
        let params = PatchParams::apply(MANAGER).force();
        self.leases.patch(&node.0, &params, &patch).await.map(drop)
    }

    async fn run_pod(&self, pod: &PodName, now: Timestamp) -> Result<(), kube::Error> {
        let patch = Patch::Strategic(objects::running(now));
        let params = PatchParams::default();
        self.pods_in(pod).patch_status(&pod.name, &params, &patch).await.map(drop)
    }

    fn pods_in(&self, pod: &PodName) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &pod.namespace)
    }
}

/// Who is already gone need not be ended.
fn gone_is_gone(ended: Result<(), kube::Error>) -> Result<(), kube::Error> {
    match ended {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        ended => ended,
    }
}
