//! The scheduler's side: an API server, a scheduler, and the objects of one world after the other.

use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Context, Result};
use e2e::kube::{Apiserver, ApiserverOptions, Scheduler};
use e2e::scene::Scene;
use e2e::store::{Lane, Store, StoreOptions};
use e2e::wait::{Level, wait_for};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod};
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::generate::{self, BoundPod, World};
use crate::model::{Fixtures, Model};

/// A decision takes milliseconds; a pod whose node the scheduler had not seen yet, some seconds.
const DECISION_WAIT: Duration = Duration::from_secs(60);

/// Objects that are made at once.
const WIDTH: usize = 8;

/// What is off by default and understood by us.
const GATES: &str = "--feature-gates=TaintTolerationComparisonOperators=true";

pub(crate) struct Stage {
    pub(crate) fixtures: Fixtures,
    client: Client,
    scheduler: Scheduler,
    // Ended after what speaks to them.
    _server: Apiserver,
    _store: Store,
}

#[derive(Debug)]
pub(crate) enum Decision {
    Placed(String),
    /// With the scheduler's words.
    Unschedulable(String),
}

// === impl Stage ===

impl Stage {
    pub(crate) async fn set(scene: &Scene, lane: Lane) -> Result<Self> {
        let options = StoreOptions::new(lane, "store").flags(lane.without_sync());
        let store = Store::start(scene, &options).await?;
        // Without a controller nobody would lift the taint that every new node is given.
        let flags = ["--disable-admission-plugins=TaintNodesByCondition", GATES];
        let flags = flags.map(ToOwned::to_owned).to_vec();
        let options = ApiserverOptions { flags, ..ApiserverOptions::default() };
        let server = Apiserver::start(scene, &store, &options).await?;
        let config = Kubeconfig::read_from(server.kubectl().kubeconfig())?;
        let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
        let client = Client::try_from(config)?;
        // Before the scheduler starts, so that it knows them from the first moment.
        let fixtures = fixtures(&client).await?;
        let scheduler = Scheduler::start(scene, server.kubectl(), &[GATES])?;
        Ok(Self { fixtures, client, scheduler, _server: server, _store: store })
    }

    /// Makes the nodes and pods of a world, here and in the model, and waits until the scheduler has
    /// seen them all.
    pub(crate) async fn build(&mut self, world: &World, model: &mut Model) -> Result<()> {
        let (last, others) = world.nodes.split_last().context("a world has nodes")?;
        let api: Api<Node> = Api::all(self.client.clone());
        let created = stream::iter(others).map(|node| create(&api, node)).buffered(WIDTH);
        for node in created.try_collect::<Vec<Node>>().await? {
            model.add_node(&node)?;
        }
        model.add_node(&create(&api, last).await?)?;
        let bound = stream::iter(&world.pods).map(|pod| self.bind(pod)).buffered(WIDTH);
        for pod in bound.try_collect::<Vec<Pod>>().await? {
            let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
            model.place(&pod, &node.context("these pods have a node")?)?;
        }
        self.wait_seen(world, model).await
    }

    /// Makes a pod that has its node.
    async fn bind(&self, pod: &BoundPod) -> Result<Pod> {
        let created = self.create(&pod.object).await?;
        if !pod.is_deleted {
            return Ok(created);
        }
        // Nobody ends its containers, so it stays as it is.
        let api = self.pods_of(&created);
        let deleted = api.delete(&created.name_any(), &DeleteParams::default()).await?;
        deleted.left().context("a bound pod is deleted gracefully")
    }

    /// Nodes reach the scheduler in the order they were made, pods likewise, and the last node was made
    /// after the others: once it puts a pod on the
    /// last node, it knows all the others. That pod stays.
    async fn wait_seen(&mut self, world: &World, model: &mut Model) -> Result<()> {
        let pod = self.create(&world.beacon()).await?;
        let decided = self.wait_for_decision(&pod, |decision| match decision {
            Decision::Placed(node) => Some(node),
            Decision::Unschedulable(_) => None,
        });
        let node = decided.await?;
        model.place(&pod, &node)
    }

    pub(crate) async fn decide(&mut self, pod: &Pod) -> Result<Decision> {
        self.wait_for_decision(pod, Some).await
    }

    async fn wait_for_decision<T>(
        &mut self,
        pod: &Pod,
        accept: impl Fn(Decision) -> Option<T>,
    ) -> Result<T> {
        let api = self.pods_of(pod);
        let name = pod.name_any();
        wait_for(&format!("the scheduler to decide on {name}"), DECISION_WAIT, async || {
            self.scheduler.ensure_alive()?;
            let decision = decision(&api.get(&name).await?);
            let status = format!("{decision:?}");
            Ok(decision.and_then(&accept).map_or(Level::Below(status), Level::Reached))
        })
        .await
    }

    pub(crate) async fn create(&self, pod: &Value) -> Result<Pod> {
        let namespace = pod["metadata"]["namespace"].as_str().context("pods have a namespace")?;
        create(&Api::namespaced(self.client.clone(), namespace), pod).await
    }

    pub(crate) async fn delete(&self, pod: &Pod) -> Result<()> {
        self.pods_of(pod).delete(&pod.name_any(), &at_once()).await?;
        Ok(())
    }

    /// Takes everything away but what all worlds share.
    pub(crate) async fn clear(&self) -> Result<()> {
        for namespace in generate::NAMESPACES {
            let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
            pods.delete_collection(&at_once(), &ListParams::default()).await?;
        }
        let nodes: Api<Node> = Api::all(self.client.clone());
        nodes.delete_collection(&at_once(), &ListParams::default()).await?;
        Ok(())
    }

    fn pods_of(&self, pod: &Pod) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &pod.namespace().unwrap_or_default())
    }
}

fn at_once() -> DeleteParams {
    DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() }
}

fn decision(pod: &Pod) -> Option<Decision> {
    if let Some(node) = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()) {
        return Some(Decision::Placed(node));
    }
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let scheduled = conditions.iter().find(|each| each.type_ == "PodScheduled")?;
    let is_refused = scheduled.reason.as_deref() == Some("Unschedulable");
    let words = || scheduled.message.clone().unwrap_or_default();
    is_refused.then(|| Decision::Unschedulable(words()))
}

async fn create<K>(api: &Api<K>, object: &Value) -> Result<K>
where
    K: Clone + Debug + DeserializeOwned + Serialize,
{
    let typed = serde_json::from_value(object.clone()).context("write down an object")?;
    let created = api.create(&PostParams::default(), &typed).await;
    created.with_context(|| format!("create {object}"))
}

async fn fixtures(client: &Client) -> Result<Fixtures> {
    let mut fixtures = Fixtures::default();
    for object in generate::namespaces() {
        let created: Namespace = create(&Api::all(client.clone()), &object).await?;
        fixtures.namespaces.push(created);
    }
    for (volume, claims) in generate::volumes() {
        let created: PersistentVolume = create(&Api::all(client.clone()), &volume).await?;
        fixtures.volumes.push(created);
        for claim in claims {
            let namespace = claim["metadata"]["namespace"].as_str().unwrap_or_default();
            let created: PersistentVolumeClaim =
                create(&Api::namespaced(client.clone(), namespace), &claim).await?;
            fixtures.claims.push(created);
        }
    }
    Ok(fixtures)
}
