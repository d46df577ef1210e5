//! What the cases share: a cluster with a scheduler; and for each case a cloud, an autoscaler, and a
//! look at what they do.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::assets::Asset;
use e2e::kube::{Apiserver, ApiserverOptions, Scheduler};
use e2e::process::{Process, Program};
use e2e::scene::Scene;
use e2e::store::{Lane, Store, StoreOptions};
use e2e::wait::{Level, wait_for};
use e2e::{http, ports};
use futures::future::LocalBoxFuture;
use registry::Registry;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

const NEEDS: [Asset; 5] =
    [Asset::Etcd, Asset::KubeApiserver, Asset::Kubectl, Asset::KubeScheduler, Asset::Windlass];

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
    "--node-delete-delay-after-taint=200ms",
    "--leader-elect-lease-duration=2s",
    "--leader-elect-renew-deadline=1500ms",
    "--leader-elect-retry-period=500ms",
    "--log-level=debug",
];

/// One named test.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) play: for<'s> fn(&'s mut Stage) -> LocalBoxFuture<'s, Result<()>>,
}

/// Lists functions as cases under their own names.
macro_rules! cases {
    ($($case:ident),+ $(,)?) => {
        pub(crate) fn cases() -> Vec<$crate::stage::Case> {
            vec![$($crate::stage::Case {
                name: stringify!($case),
                play: |stage| Box::pin($case(stage)),
            }),+]
        }
    };
}
pub(crate) use cases;

pub(crate) struct Theatre {
    stage: Option<Stage>,
    runtime: Runtime,
}

/// A cluster, and what the current case runs on it.
pub(crate) struct Stage {
    cloud: Option<Process>,
    cloud_config: String,
    scheduler: Scheduler,
    server: Apiserver,
    _store: Store,
    scene: Scene,
    /// So that no two processes of cases write to one log.
    started: usize,
}

/// An autoscaler that runs.
pub(crate) struct Autoscaler {
    pub(crate) process: Process,
    pub(crate) port: u16,
}

// === impl Theatre ===

impl Theatre {
    pub(crate) fn new(runtime: Runtime) -> Self {
        Self { stage: None, runtime }
    }

    /// Plays a case; `Some` says why it could not be played. After a failure the next case gets a new
    /// cluster, since this one may be in any state.
    pub(crate) fn play(&mut self, case: Case) -> Result<Option<String>> {
        let mut stage = match self.stage.take() {
            Some(stage) => stage,
            None => match Scene::open("autoscaler", &NEEDS)? {
                Ok(scene) => self.runtime.block_on(Stage::set(scene))?,
                Err(reason) => return Ok(Some(reason)),
            },
        };
        let outcome = self.runtime.block_on(async {
            stage.clear().await?;
            (case.play)(&mut stage).await?;
            stage.cloud = None;
            stage.scheduler.ensure_alive()
        });
        if outcome.is_err() {
            stage.scene.on_failure();
        } else {
            self.stage = Some(stage);
        }
        outcome.map(|()| None)
    }
}

// === impl Stage ===

impl Stage {
    async fn set(scene: Scene) -> Result<Self> {
        let options = StoreOptions::new(Lane::Etcd, "store").flags(Lane::Etcd.without_sync());
        let store = Store::start(&scene, &options).await?;
        let server = Apiserver::start(&scene, &store, &ApiserverOptions::default()).await?;
        let scheduler = Scheduler::start(&scene, server.kubectl(), &[])?;
        let (cloud, cloud_config) = (None, String::new());
        Ok(Self { cloud, cloud_config, scheduler, server, _store: store, scene, started: 0 })
    }

    /// No node, no pod, and a state that says that nothing is under way: one that is missing would be
    /// taken for lost, and nothing removed for minutes.
    async fn clear(&mut self) -> Result<()> {
        self.cloud = None;
        let all: [&[&str]; 5] = [
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
        self.cloud_config = config.display().to_string();
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

    /// An autoscaler, with times of seconds and these flags besides.
    pub(crate) fn autoscaler(&mut self, flags: &[&str]) -> Result<Autoscaler> {
        let [port] = ports::free()?;
        let kubeconfig = self.server.kubectl().kubeconfig().display().to_string();
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

    /// Nodes that nobody's kubelet reports for, in no group.
    pub(crate) async fn silent_nodes(&self, count: usize) -> Result<()> {
        let node = |number: usize| {
            let metadata = json!({"name": format!("silent-{number}")});
            json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata})
        };
        let nodes: Vec<Value> = (0..count).map(node).collect();
        self.server.kubectl().create(&nodes).await?;
        Ok(())
    }

    /// Runs a command of the binary and returns what it prints.
    pub(crate) fn windlass(&self, arguments: &[&str]) -> Result<(i32, String)> {
        let path = self.scene.program(Asset::Windlass)?;
        let output = std::process::Command::new(path).args(arguments).output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok((output.status.code().unwrap_or(-1), text))
    }

    /// Pods that nobody controls, each with this CPU.
    pub(crate) async fn pods(&self, names: &[&str], cpu: &str, more: &Value) -> Result<()> {
        let pod = |name: &&str| {
            let mut spec = json!({
                "containers": [{
                    "name": "main",
                    "image": "none",
                    "resources": {"requests": {"cpu": cpu}},
                }],
                "terminationGracePeriodSeconds": 0,
            });
            for (key, value) in more.as_object().into_iter().flatten() {
                spec[key] = value.clone();
            }
            let metadata = json!({"name": name, "namespace": "default"});
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        };
        let pods: Vec<Value> = names.iter().map(pod).collect();
        self.server.kubectl().create(&pods).await?;
        Ok(())
    }

    /// A claim to devices, of a class that nobody has.
    pub(crate) async fn claim(&self, name: &str) -> Result<()> {
        let request = json!({"name": "device", "exactly": {"deviceClassName": "none"}});
        let claim = json!({
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"devices": {"requests": [request]}},
        });
        self.server.kubectl().create(&[claim]).await?;
        Ok(())
    }

    /// Which pod is on which node; those that wait are not told.
    pub(crate) async fn bound(&self) -> Result<Vec<(String, String)>> {
        let pods = self.json(&["get", "pods", "-n", "default"]).await?;
        let items = pods["items"].as_array().cloned().unwrap_or_default();
        let bound = items.iter().filter_map(|pod| {
            let node = pod["spec"]["nodeName"].as_str()?;
            Some((pod["metadata"]["name"].as_str()?.to_owned(), node.to_owned()))
        });
        Ok(bound.collect())
    }

    pub(crate) async fn wait_bound(&self, count: usize) -> Result<Vec<(String, String)>> {
        wait_for(&format!("{count} pods to be bound"), PATIENCE, async || {
            let bound = self.bound().await?;
            Ok(match bound.len() == count {
                true => Level::Reached(bound),
                false => Level::Below(format!("{bound:?}")),
            })
        })
        .await
    }

    pub(crate) async fn wait_nodes(&self, count: usize) -> Result<()> {
        wait_for(&format!("{count} nodes"), PATIENCE, async || {
            let nodes = self.json(&["get", "nodes"]).await?;
            let names: Vec<&Value> = nodes["items"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|it| &it["metadata"]["name"])
                .collect();
            Ok(match names.len() == count {
                true => Level::Reached(()),
                false => Level::Below(format!("{names:?}")),
            })
        })
        .await
    }

    /// Waits for an Event, by its reason, and returns its note.
    pub(crate) async fn wait_event(&self, reason: &str) -> Result<String> {
        wait_for(&format!("the event {reason}"), PATIENCE, async || {
            let events = self.json(&["get", "events.events.k8s.io", "-A"]).await?;
            let items = events["items"].as_array().cloned().unwrap_or_default();
            let found = items.iter().find(|event| event["reason"] == reason);
            Ok(match found {
                Some(event) => {
                    Level::Reached(event["note"].as_str().unwrap_or_default().to_owned())
                }
                None => {
                    let reasons: Vec<&Value> = items.iter().map(|event| &event["reason"]).collect();
                    Level::Below(format!("{reasons:?}"))
                }
            })
        })
        .await
    }
}

// === impl Autoscaler ===

impl Autoscaler {
    /// What it answers about itself.
    pub(crate) async fn status(&mut self) -> Result<Value> {
        self.process.ensure_alive()?;
        let answer = http::get(self.port, "/status").await?;
        ensure!(answer.status == 200, "{}: {}", answer.status, answer.body);
        answer.json()
    }

    pub(crate) async fn explain(&self, name: &str) -> Result<String> {
        let answer = http::get(self.port, &format!("/explain/{name}")).await?;
        Ok(answer.body)
    }

    /// Waits until what it says of a name has these words.
    pub(crate) async fn wait_explained(&mut self, name: &str, words: &str) -> Result<String> {
        wait_for(&format!("{name} to be explained by {words}"), PATIENCE, async || {
            self.process.ensure_alive()?;
            // It may not listen yet.
            Ok(match self.explain(name).await {
                Ok(said) if said.contains(words) => Level::Reached(said),
                Ok(said) => Level::Below(said),
                Err(error) => Level::Below(format!("{error:#}")),
            })
        })
        .await
    }

    /// The value of a metric, summed over its labels; zero if it was never touched.
    pub(crate) async fn metric(&self, name: &str) -> Result<f64> {
        let answer = http::get(self.port, "/metrics").await?;
        let samples = answer.body.lines().filter(|line| {
            line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']))
        });
        let values = samples.map(|line| {
            let value = line.rsplit(' ').next().context("a sample has a value")?;
            value.parse::<f64>().with_context(|| format!("read `{line}`"))
        });
        values.sum()
    }

    /// Waits until its status is as wanted.
    pub(crate) async fn wait_status(
        &mut self,
        what: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        wait_for(what, PATIENCE, async || {
            Ok(match self.status().await {
                Ok(status) if wanted(&status) => Level::Reached(status),
                Ok(status) => Level::Below(status.to_string()),
                Err(error) => {
                    self.process.ensure_alive()?;
                    Level::Below(format!("{error:#}"))
                }
            })
        })
        .await
    }

    pub(crate) async fn stop(self) -> Result<()> {
        let status = self.process.stop().await?;
        ensure!(status.success(), "the autoscaler ended with {status}");
        Ok(())
    }
}

/// A group's part of a status.
pub(crate) fn group<'a>(status: &'a Value, name: &str) -> &'a Value {
    let groups = status["nodeGroups"].as_array().map(Vec::as_slice).unwrap_or_default();
    groups.iter().find(|group| group["name"] == name).unwrap_or(&Value::Null)
}

/// How many nodes a group is meant to have; −1 if that is not known.
pub(crate) fn target(status: &Value, name: &str) -> i64 {
    group(status, name)["health"]["cloudProviderTarget"].as_i64().unwrap_or(-1)
}
