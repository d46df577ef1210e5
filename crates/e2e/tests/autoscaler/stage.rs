//! What the cases share: a cluster with a scheduler; and for each case a cloud, an autoscaler, and a
//! look at what they do. The autoscaler logs in as the account of its own manifests, everybody else as
//! the administrator.

mod autoscaler;
mod look;
mod objects;

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use cloud_api::externalgrpc::NodeGroupIncreaseSizeRequest;
use cloud_api::externalgrpc::cloud_provider_client::CloudProviderClient;
use e2e::assets::Asset;
use e2e::kube::{Apiserver, ApiserverOptions, Controllers, Identity, Scheduler};
use e2e::ports;
use e2e::process::{Process, Program};
use e2e::scene::Scene;
use e2e::store::{Lane, Store, StoreOptions};
use futures::future::LocalBoxFuture;
use registry::Registry;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tonic::transport::Endpoint;

pub(crate) use autoscaler::{Autoscaler, group, target};
pub(crate) use look::TO_BE_DELETED;

/// Beside the store of the lane.
const PEERS: [Asset; 5] = [
    Asset::KubeApiserver,
    Asset::Kubectl,
    Asset::KubeScheduler,
    Asset::KubeControllerManager,
    Asset::Windlass,
];

/// The account that the manifests create, and its namespace.
const HOME: &str = "kube-system";
const ACCOUNT: &str = "windlass-autoscaler";

/// What keeps pods at a number, budgets up to date and silent nodes known as such.
const CONTROLLERS: &[&str] = &[
    "replicaset-controller",
    "disruption-controller",
    "node-lifecycle-controller",
    "taint-eviction-controller",
];

/// Simulated kubelets renew their Leases every ten seconds.
const SILENCE_MAX: Duration = Duration::from_secs(20);

/// On two shared cores everything takes its time; what is checked is what happens, not how fast.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// Times of seconds where a cluster has minutes.
const KNOBS: &[&str] = &[
    "--scan-interval=200ms",
    "--max-node-provision-time=6s",
    "--max-node-startup-time=6s",
    "--scale-down-unneeded-time=4s",
    "--scale-down-unready-time=8s",
    "--initial-node-group-backoff-duration=3s",
    "--max-node-group-backoff-duration=12s",
    "--scale-down-delay-after-add=4s",
    "--scale-down-delay-after-failure=4s",
    "--unknown-outcome-settle=1s",
    "--unremovable-node-recheck-timeout=1s",
    "--node-delete-delay-after-taint=200ms",
    "--leader-elect-lease-duration=2s",
    "--leader-elect-renew-deadline=1500ms",
    "--leader-elect-retry-period=500ms",
    "--log-level=debug",
];

/// Where a case is played unless tests run at length, when all are played everywhere.
pub(crate) const BOTH: &[Lane] = &[Lane::Etcd, Lane::Windlass];
pub(crate) const ETCD: &[Lane] = &[Lane::Etcd];
pub(crate) const WINDLASS: &[Lane] = &[Lane::Windlass];
pub(crate) const AT_LENGTH: &[Lane] = &[];

/// One named test.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// On the others it is left out unless tests run at length, or it is asked for by `--ignored`.
    pub(crate) by_default: &'static [Lane],
    pub(crate) play: for<'s> fn(&'s mut Stage) -> LocalBoxFuture<'s, Result<()>>,
}

/// Lists functions as cases under their own names, by where they are played.
macro_rules! cases {
    ($($lanes:ident: [$($case:ident),+ $(,)?]),+ $(,)?) => {
        pub(crate) fn cases() -> Vec<$crate::stage::Case> {
            vec![$($($crate::stage::Case {
                name: stringify!($case),
                by_default: $crate::stage::$lanes,
                play: |stage| Box::pin($case(stage)),
            }),+),+]
        }
    };
}
pub(crate) use cases;

pub(crate) struct Theatre {
    stage: Option<(Lane, Stage)>,
    runtime: Runtime,
}

/// A cluster, and what the current case runs on it.
pub(crate) struct Stage {
    cloud: Option<Process>,
    cloud_port: u16,
    cloud_config: String,
    controllers: Option<Controllers>,
    scheduler: Scheduler,
    server: Apiserver,
    store: Store,
    scene: Scene,
    /// So that no two processes of cases write to one log.
    started: usize,
}

// === impl Case ===

impl Case {
    pub(crate) fn is_long(&self, store: Lane) -> bool {
        !self.by_default.contains(&store)
    }
}

// === impl Theatre ===

impl Theatre {
    pub(crate) fn new(runtime: Runtime) -> Self {
        Self { stage: None, runtime }
    }

    /// Plays a case; `Some` says why it could not be played. After a failure the next case gets a new
    /// cluster, since this one may be in any state.
    pub(crate) fn play(&mut self, lane: Lane, case: Case) -> Result<Option<String>> {
        let mut stage = match self.stage.take() {
            Some((of, stage)) if of == lane => stage,
            other => {
                // Two API servers at once would be slow on a small machine.
                drop(other);
                let needs = [&[lane.asset()], &PEERS[..]].concat();
                match Scene::open("autoscaler", &needs)? {
                    Ok(scene) => self.runtime.block_on(Stage::set(scene, lane))?,
                    Err(reason) => return Ok(Some(reason)),
                }
            }
        };
        let outcome = self.runtime.block_on(stage.perform(case));
        if outcome.is_err() {
            stage.scene.on_failure();
        } else {
            self.stage = Some((lane, stage));
        }
        outcome.map(|()| None)
    }
}

// === impl Stage ===

impl Stage {
    async fn set(scene: Scene, lane: Lane) -> Result<Self> {
        let options = StoreOptions::new(lane, "store").flags(lane.without_sync());
        let store = Store::start(&scene, &options).await?;
        let identities = vec![Identity::service_account(HOME, ACCOUNT)];
        let options = ApiserverOptions { identities, ..ApiserverOptions::default() };
        let server = Apiserver::start(&scene, &store, &options).await?;
        let scheduler = Scheduler::start(&scene, server.kubectl(), &[])?;
        let stage = Self {
            cloud: None,
            cloud_port: 0,
            cloud_config: String::new(),
            controllers: None,
            scheduler,
            server,
            store,
            scene,
            started: 0,
        };
        stage.apply_manifests().await?;
        Ok(stage)
    }

    /// As users do, but that its pods are processes of the cases.
    async fn apply_manifests(&self) -> Result<()> {
        let (code, manifests) = self.windlass(&["autoscaler", "manifests", "--replicas=0"])?;
        ensure!(code == 0, "`windlass autoscaler manifests` ended with {code}");
        let apply = ["apply", "--filename=-"];
        self.server.kubectl().run_with_input(&apply, manifests.as_bytes()).await?;
        Ok(())
    }

    async fn perform(&mut self, case: Case) -> Result<()> {
        self.clear().await?;
        (case.play)(self).await?;
        self.cloud = None;
        if let Some(mut controllers) = self.controllers.take() {
            controllers.ensure_alive()?;
        }
        self.scheduler.ensure_alive()
    }

    /// No node, no pod, and a state that says that nothing is under way: one that is missing would be
    /// taken for lost, and nothing removed for minutes.
    async fn clear(&mut self) -> Result<()> {
        (self.cloud, self.controllers) = (None, None);
        let all: [&[&str]; 7] = [
            &["delete", "replicasets", "--all"],
            &["delete", "poddisruptionbudgets", "--all"],
            &["delete", "pods", "--all", "--force", "--grace-period=0", "--wait=true"],
            &["delete", "resourceclaims", "--all"],
            &["delete", "nodes", "--all"],
            &["delete", "events.events.k8s.io", "--all", "-A"],
            &["delete", "lease", "cluster-autoscaler", "-n", "kube-system", "--ignore-not-found"],
        ];
        for arguments in all {
            self.kubectl(arguments).await?;
        }
        let maps = ["windlass-autoscaler-state", "cluster-autoscaler-status"];
        for map in maps {
            let delete = ["delete", "configmap", map, "-n", "kube-system", "--ignore-not-found"];
            self.kubectl(&delete).await?;
        }
        let state = String::from_utf8(Registry::new(registry::Config::default()).save())?;
        let map = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": maps[0], "namespace": "kube-system"},
            "data": {"state": state},
        });
        self.server.kubectl().create(&[map]).await?;
        Ok(())
    }

    pub(crate) async fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        self.server.kubectl().run(arguments).await
    }

    pub(crate) async fn json(&self, arguments: &[&str]) -> Result<Value> {
        self.server.kubectl().json(arguments).await
    }

    fn log_name(&mut self, what: &str) -> String {
        self.started += 1;
        format!("{what}-{}", self.started)
    }

    /// A cloud for the case, by its scenario.
    pub(crate) async fn cloud(&mut self, scenario: &str) -> Result<()> {
        let [port] = ports::free()?;
        let (name, folder) = (self.log_name("simcloud"), self.scene.folder("clouds")?);
        let file = folder.join(format!("{name}.yaml"));
        fs::write(&file, scenario).context("write the scenario")?;
        let config = folder.join(format!("{name}-provider.yaml"));
        fs::write(&config, format!("address: 127.0.0.1:{port}\n")).context("write the address")?;
        (self.cloud_port, self.cloud_config) = (port, config.display().to_string());
        let kubeconfig = self.server.kubectl().kubeconfig().display();
        let cloud = Process::start(&Program {
            name,
            path: self.scene.program(Asset::Windlass)?,
            arguments: vec![
                "autoscaler".to_owned(),
                "simcloud".to_owned(),
                format!("--scenario={}", file.display()),
                format!("--listen=127.0.0.1:{port}"),
                format!("--kubeconfig={kubeconfig}"),
            ],
            environment: Vec::new(),
            log_folder: self.scene.folder("logs")?,
        })?;
        self.cloud = Some(cloud);
        Ok(())
    }

    /// The controllers of a real cluster, until the case ends.
    pub(crate) fn controllers(&mut self) -> Result<()> {
        let name = self.log_name("kube-controller-manager");
        let options = (CONTROLLERS, SILENCE_MAX);
        self.controllers =
            Some(Controllers::start(&self.scene, self.server.kubectl(), name, options)?);
        Ok(())
    }

    /// The store of the API server is killed, and started again on what it has kept.
    pub(crate) async fn kill_store(&mut self) -> Result<()> {
        self.store.kill()?;
        self.store.restart().await
    }

    /// Somebody else raises a group's target.
    pub(crate) async fn raise_by_hand(&self, group: &str, by: i32) -> Result<()> {
        let address = format!("http://127.0.0.1:{}", self.cloud_port);
        let channel = Endpoint::from_shared(address)?.connect().await.context("reach the cloud")?;
        let mut cloud = CloudProviderClient::new(channel);
        let request = NodeGroupIncreaseSizeRequest { delta: by, id: group.to_owned() };
        cloud.node_group_increase_size(request).await.context("raise the target by hand")?;
        Ok(())
    }

    /// An autoscaler, with times of seconds and these flags besides.
    pub(crate) fn autoscaler(&mut self, flags: &[&str]) -> Result<Autoscaler> {
        let [port] = ports::free()?;
        let account = Identity::service_account(HOME, ACCOUNT).user;
        let kubeconfig = self.server.kubectl_of(&account)?.kubeconfig().display().to_string();
        let mut arguments: Vec<String> = ["autoscaler", "run"].map(ToOwned::to_owned).to_vec();
        arguments.extend(KNOBS.iter().chain(flags).map(ToString::to_string));
        arguments.extend([
            format!("--cloud-config={}", self.cloud_config),
            format!("--kubeconfig={kubeconfig}"),
            format!("--address=127.0.0.1:{port}"),
        ]);
        let process = Process::start(&Program {
            name: self.log_name("autoscaler"),
            path: self.scene.program(Asset::Windlass)?,
            arguments,
            environment: Vec::new(),
            log_folder: self.scene.folder("logs")?,
        })?;
        Ok(Autoscaler { process, port })
    }

    /// As a flag.
    pub(crate) fn kubeconfig(&self) -> String {
        format!("--kubeconfig={}", self.server.kubectl().kubeconfig().display())
    }

    /// Runs a command of the binary and returns what it prints.
    pub(crate) fn windlass(&self, arguments: &[&str]) -> Result<(i32, String)> {
        let path = self.scene.program(Asset::Windlass)?;
        let output = std::process::Command::new(path).args(arguments).output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok((output.status.code().unwrap_or(-1), text))
    }
}
