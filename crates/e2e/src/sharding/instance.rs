//! Instances as processes: the example controller, logged in as a pod would be, and what it and the
//! audit log say about its work.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde::Deserialize;
use serde_json::{Value, json};
use sharding::core::history::Worker;
use sharding::core::names::InstanceId;

use super::World;
use super::arena::{ACCOUNT, Arena, LEASE_STEADY};
use super::evidence::{Moment, Step, Worked, Written};
use crate::assets::Asset;
use crate::kube::Audit;
use crate::process::{Process, Program};

/// What a bound token proves.
const POD_NAME: &str = "authentication.kubernetes.io/pod-name";

/// A running instance.
#[derive(Debug)]
pub struct Instance {
    pub id: String,
    process: Process,
    history: PathBuf,
}

/// How an instance is started.
#[derive(Clone, Debug)]
pub struct InstanceOptions {
    /// D of its Lease.
    pub lease: Duration,
    /// Of whoever passes its requests on to the API server; its own port, if none.
    pub port: Option<u16>,
    /// Beside those that every instance gets.
    pub flags: Vec<String>,
    pub environment: Vec<(String, String)>,
}

/// What a pod of the instance's name would have: a token that is bound to it.
#[derive(Clone, Debug)]
pub(super) struct Pass {
    pub(super) kubeconfig: PathBuf,
    pub(super) token: String,
    pub(super) pod_uid: String,
}

/// A line of its history.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    event: String,
    uid: String,
    id: String,
    incarnation: String,
    monotonic_ns: u64,
}

// === impl InstanceOptions ===

impl Default for InstanceOptions {
    fn default() -> Self {
        Self { lease: LEASE_STEADY, port: None, flags: Vec::new(), environment: Vec::new() }
    }
}

// === impl Instance ===

impl Instance {
    pub(super) async fn start(
        world: &World,
        arena: &mut Arena,
        id: &str,
        options: &InstanceOptions,
    ) -> Result<Self> {
        let Pass { kubeconfig, pod_uid, .. } = pass(world, arena, id, options.port).await?;
        let number = world.started();
        let name = format!("{}-{id}-{number}", arena.name);
        let history = world.scene.folder("histories")?.join(&name);
        let mut arguments = vec![
            format!("--ring={}", arena.name),
            format!("--id={id}"),
            format!("--namespace={}", arena.name),
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--lease-seconds={}", options.lease.as_secs()),
            format!("--pod-name={id}"),
            format!("--pod-uid={pod_uid}"),
            format!("--history={}", history.display()),
        ];
        arguments.extend(options.flags.clone());
        let process = Process::start(&Program {
            name,
            path: world.scene.program(Asset::Checksums)?,
            arguments,
            environment: options.environment.clone(),
            log_folder: world.scene.folder("logs")?,
        })?;
        let instance = Self { id: id.to_owned(), process, history };
        arena.on_started(&instance);
        Ok(instance)
    }

    #[must_use]
    pub fn history(&self) -> &Path {
        &self.history
    }

    /// The objects it is at work on, and since when. Nothing else happens to one that has just begun.
    pub fn begun(&self) -> Result<BTreeMap<String, Moment>> {
        let mut begun = BTreeMap::new();
        for Worked { at, uid, step, .. } in worked(&self.history)? {
            match step {
                Step::Began => begun.insert(uid, at),
                Step::Went | Step::Ended => begun.remove(&uid),
            };
        }
        Ok(begun)
    }

    pub fn ensure_alive(&mut self) -> Result<()> {
        self.process.ensure_alive()
    }

    /// What it said so far.
    pub fn log(&self) -> Result<String> {
        self.process.log()
    }

    /// SIGSTOP: it neither ends nor notices that time passes.
    pub async fn pause(&self, arena: &mut Arena) -> Result<()> {
        self.process.pause().await?;
        arena.on_stopped(&self.history);
        Ok(())
    }

    pub fn resume(&self) -> Result<()> {
        self.process.resume()
    }

    /// kill -9.
    pub fn kill(self, arena: &mut Arena) -> Result<()> {
        self.process.kill()?;
        arena.on_stopped(&self.history);
        Ok(())
    }

    /// SIGTERM, and an orderly end.
    pub async fn stop(self) -> Result<()> {
        let status = self.process.stop().await?;
        anyhow::ensure!(status.success(), "{} ended with {status}", self.id);
        Ok(())
    }

    /// Waits until it ends by itself; how.
    pub async fn wait_end(&mut self, bound: Duration) -> Result<ExitStatus> {
        self.process.wait_end(bound).await
    }
}

/// The ConfigMap that the example keeps for a Secret.
#[must_use]
pub fn child_of(secret: &str) -> String {
    format!("{secret}-checksum")
}

/// Makes the pod, if there is none, and a token for it.
pub(super) async fn pass(
    world: &World,
    arena: &Arena,
    id: &str,
    port: Option<u16>,
) -> Result<Pass> {
    let namespace = arena.name.as_str();
    let pods: Api<Pod> = Api::namespaced(world.client.clone(), namespace);
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": id},
        "spec": {
            "serviceAccountName": ACCOUNT,
            "containers": [{"name": "controller", "image": "checksums"}],
        },
    });
    let params = PatchParams::apply("e2e");
    let pod = pods.patch(id, &params, &Patch::Apply(pod)).await.context("make a pod")?;
    let uid = pod.uid().context("a pod has a uid")?;
    let bound = json!({"kind": "Pod", "apiVersion": "v1", "name": id, "uid": uid});
    let request = json!({"metadata": {}, "spec": {"audiences": [], "boundObjectRef": bound}});
    let accounts: Api<ServiceAccount> = Api::namespaced(world.client.clone(), namespace);
    let request = serde_json::from_value(request).context("write down a request")?;
    let answer = accounts.create_token_request(ACCOUNT, &PostParams::default(), &request).await;
    let token = answer.context("ask for a token")?.status.context("there is no token")?.token;
    let user = format!("{namespace}-{id}");
    let port = port.unwrap_or_else(|| world.server.port());
    let login = world.server.login(&world.scene, &user, &token, port)?;
    Ok(Pass { kubeconfig: login.kubeconfig().to_owned(), token, pod_uid: uid })
}

/// What a process wrote about its work. A line that it was killed over is left out.
pub(super) fn worked(history: &Path) -> Result<Vec<Worked>> {
    if !history.exists() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(history).context("read a history")?;
    let complete = text.rfind('\n').map_or("", |end| &text[..end]);
    complete.lines().map(read).collect()
}

fn read(line: &str) -> Result<Worked> {
    let line: Line = serde_json::from_str(line).with_context(|| format!("read `{line}`"))?;
    let step = match line.event.as_str() {
        "start" => Step::Began,
        "step" => Step::Went,
        _ => Step::Ended,
    };
    let worker = Worker { id: line.id.parse()?, incarnation: line.incarnation };
    Ok(Worked { at: Duration::from_nanos(line.monotonic_ns), uid: line.uid, worker, step })
}

/// What the server accepted from the instances of a namespace.
pub(super) fn written(audit: &Audit, namespace: &str) -> Result<Vec<Written>> {
    let account = format!("system:serviceaccount:{namespace}:{ACCOUNT}");
    let events = audit.events()?;
    let accepted = events.iter().filter(|event| {
        event["user"]["username"] == account.as_str()
            && ["update", "patch"].iter().any(|verb| event["verb"] == *verb)
            && event["responseStatus"]["code"] == 200
    });
    Ok(accepted.filter_map(read_written).collect())
}

fn read_written(event: &Value) -> Option<Written> {
    let by = event["user"]["extra"][POD_NAME][0].as_str()?;
    let metadata = &event["responseObject"]["metadata"];
    Some(Written {
        uid: metadata["uid"].as_str()?.to_owned(),
        version: metadata["resourceVersion"].as_str()?.parse().ok()?,
        by: InstanceId::from_label(by),
    })
}
