//! The controller under measurement: each reconcile waits for 20 to 50 ms and applies one annotation.
//! It runs in a process of its own, in a ring or alone.

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, Result};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client, Config, ResourceExt,
    api::{Patch, PatchParams},
    config::{KubeConfigOptions, Kubeconfig},
    runtime::{
        controller::{self, Action, Controller},
        watcher,
    },
};
use kubekit::health::{self, Health};
use prometheus_client::{metrics::counter::Counter, registry::Registry};
use serde_json::json;
use sharding::instance::{JoinOptions, Shard, Stop, lease_client};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::objects::{DONE, WANTED};

/// What its counters begin with.
pub(super) const RECONCILES: &str = "bench_reconciles_total";

const WORKERS: u16 = 5;
const FIELD_MANAGER: &str = "windlass-bench";

/// The wait of a reconcile goes through these in turn.
const WAIT_MIN_MS: u64 = 20;
const WAIT_SPREAD_MS: u64 = 31;

/// Coprime to the spread, so that neighbours differ and all occur equally often.
const WAIT_STRIDE: u64 = 7;

const RETRY_AFTER: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub struct InstanceOptions {
    pub kubeconfig: PathBuf,
    /// Where the objects are, and the Lease.
    pub namespace: String,
    /// Nothing for a controller that is alone.
    pub ring: Option<String>,
    pub id: String,
    pub lease: Duration,
    /// At the end the place is held for so long, instead of given back.
    pub hold: Option<Duration>,
    pub listen: SocketAddr,
    pub pace: Pace,
}

/// When there is something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Always: each object again as soon as its turn comes.
    Busy,
    /// When an object asks for it.
    OnChange,
    /// Never: it only has its place.
    Idle,
}

struct Context {
    secrets: Api<Secret>,
    pace: Pace,
    turn: AtomicU64,
    reconciles: Counter,
}

/// Works until SIGTERM, or until the place in the ring is lost, which is a failure.
pub async fn run(options: InstanceOptions) -> Result<()> {
    let mut terminated = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let (config, counter) = (config(&options).await?, Counter::default());
    let client = Client::try_from(config.clone()).context("cannot make a client")?;
    let mut registry = Registry::with_prefix("bench");
    registry.register("reconciles", "Objects worked on", counter.clone());
    let health = Health::default();
    let ready = health.ready("joined");
    let listen = health::Options { listen: options.listen };
    let pages = health::Service::bind(&listen, health, Arc::new(registry)).await?;
    let context = Arc::new(Context {
        secrets: Api::namespaced(client.clone(), &options.namespace),
        pace: options.pace,
        turn: AtomicU64::new(0),
        reconciles: counter,
    });
    let work = async {
        match &options.ring {
            None => {
                ready.pass();
                alone(context, &mut terminated).await;
                Ok(())
            }
            Some(ring) => {
                let join = join(ring, &options, lease_client(config)?);
                let shard = tokio::select! {
                    joined = Shard::join(client, join) => joined.context("cannot join the ring")?,
                    _ = terminated.recv() => return Ok(()),
                };
                ready.pass();
                in_ring(&shard, context, options.hold, &mut terminated).await
            }
        }
    };
    tokio::select! {
        worked = work => worked,
        () = pages.run(CancellationToken::new()) => Ok(()),
    }
}

fn join(ring: &str, options: &InstanceOptions, leases: Client) -> JoinOptions {
    let join = JoinOptions::ring(ring).id(&options.id).namespace(&options.namespace);
    join.lease_duration(options.lease).lease_client(leases)
}

async fn config(options: &InstanceOptions) -> Result<Config> {
    let read = Kubeconfig::read_from(&options.kubeconfig).context("read the kubeconfig")?;
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
    config.context("the kubeconfig names no cluster")
}

/// A controller as it is without sharding.
async fn alone(context: Arc<Context>, terminated: &mut Signal) {
    let worked = Controller::new(context.secrets.clone(), watcher::Config::default())
        .with_config(controller::Config::default().concurrency(WORKERS))
        .run(reconcile, on_error, context);
    tokio::select! {
        () = worked.for_each(|_| async {}) => {}
        _ = terminated.recv() => {}
    }
}

async fn in_ring(
    shard: &Shard,
    context: Arc<Context>,
    hold: Option<Duration>,
    terminated: &mut Signal,
) -> Result<()> {
    let is_idle = context.pace == Pace::Idle;
    let worked = Controller::new(context.secrets.clone(), shard.config())
        .with_config(controller::Config::default().concurrency(WORKERS))
        .run(shard.wrap(reconcile), on_error, context);
    let (lost, outcomes) = (shard.lost(), shard.outcomes(worked));
    let mut work = std::pin::pin!(async move {
        // What is never polled watches nothing.
        if is_idle { lost.await } else { outcomes.for_each(|_| async {}).await }
    });
    tokio::select! {
        () = &mut work => {}
        _ = terminated.recv() => {
            let stop = hold.map_or(Stop::Release, Stop::Hold);
            let (stopped, ()) = tokio::join!(shard.stop(stop), work);
            stopped.context("cannot leave the ring in order")?;
        }
    }
    shard.loss().map_or(Ok(()), |loss| Err(loss.clone()).context("the place in the ring is lost"))
}

async fn reconcile(secret: Arc<Secret>, context: Arc<Context>) -> kube::Result<Action> {
    let turn = context.turn.fetch_add(1, Ordering::Relaxed);
    let annotations = secret.annotations();
    let wanted = annotations.get(WANTED).map_or("created", String::as_str);
    let is_done = annotations.get(DONE).is_some_and(|done| done == wanted);
    if context.pace == Pace::OnChange && is_done {
        return Ok(Action::await_change());
    }
    let wait = WAIT_MIN_MS + turn * WAIT_STRIDE % WAIT_SPREAD_MS;
    tokio::time::sleep(Duration::from_millis(wait)).await;
    let is_busy = context.pace == Pace::Busy;
    let done = if is_busy { turn.to_string() } else { wanted.to_owned() };
    apply(&context.secrets, &secret.name_any(), &done).await?;
    context.reconciles.inc();
    Ok(if is_busy { Action::requeue(Duration::ZERO) } else { Action::await_change() })
}

async fn apply(secrets: &Api<Secret>, name: &str, done: &str) -> kube::Result<()> {
    let applied = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "annotations": {DONE: done}},
    });
    let params = PatchParams::apply(FIELD_MANAGER).force();
    secrets.patch(name, &params, &Patch::Apply(applied)).await.map(drop)
}

fn on_error(_secret: Arc<Secret>, _error: &kube::Error, _context: Arc<Context>) -> Action {
    Action::requeue(RETRY_AFTER)
}
