//! A cluster with the labels service on it: a store, an API server, the shipped manifests applied,
//! and replicas that log in as the accounts those manifests create.
//!
//! Owns the processes and the administrator's view of the cluster. Never looks into the service: what
//! it does is judged by the objects it leaves behind.

mod audit;
mod cluster;
mod replica;

pub use audit::{Audit, Request};
pub use cluster::{Cluster, MARKER, hash, labels, stored_labels};
pub use replica::Role;

pub use crate::replica::Replica;

use std::sync::Arc;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::assets::Asset;
use crate::kube::{Apiserver, ApiserverOptions, Ground, Identity};
use crate::process::Process;
use crate::scene::Scene;
use crate::store::{Store, StoreOptions};

/// Where the service queues what it saw.
pub const TRANSACTIONS: &str = "node-metadata-transactions";

/// Where it keeps what it stored.
pub const RECORDS: &str = "node-metadata";

/// Where it keeps what live nodes have.
pub const CHECKPOINTS: &str = "node-metadata-checkpoints";

/// The service accounts of watchers and processors.
const ACCOUNTS: [&str; 2] = ["windlass-labels-watcher", "windlass-labels-processor"];

/// A kubelet that may log in, to see what it may not do.
pub const KUBELET_NODE: &str = "kubelet-1";

/// History goes early, as it does in a cluster after some minutes.
const COMPACTION: &str = "--etcd-compaction-interval=10s";

/// An administrator with every right RBAC can give, who is none of the service's administrators.
pub const OUTSIDER: &str = "outsider";

/// The cluster and everything that runs for it.
pub struct World {
    pub scene: Arc<Scene>,
    pub store: Store,
    pub server: Apiserver,
    pub cluster: Cluster,
    /// Who asked the API server for what.
    pub audit: Audit,
    accounts: [String; 2],
    replicas_started: usize,
}

// === impl World ===

impl World {
    /// What a suite in this world needs.
    #[must_use]
    pub fn needs(ground: Ground) -> Vec<Asset> {
        [&ground.needs()[..], &[Asset::Windlass]].concat()
    }

    /// Starts store and API server and applies the manifests; no replica runs yet.
    pub async fn start(scene: Arc<Scene>, ground: Ground) -> Result<Self> {
        let manifests = manifests(&scene).await?;
        let home = home(&manifests)?;
        let identities = ACCOUNTS.map(|name| Identity::service_account(&home, name));
        let accounts = identities.clone().map(|identity| identity.user);
        let audit = Audit::new(&scene)?;
        let mut flags = audit.flags();
        flags.push(COMPACTION.to_owned());
        let options = ApiserverOptions {
            release: ground.release,
            flags,
            identities: [&identities[..], &[Identity::kubelet(KUBELET_NODE), outsider()]].concat(),
        };
        let lane = ground.store;
        let store_options = StoreOptions::new(lane, "store").flags(lane.without_sync());
        let store = Store::start(&scene, &store_options).await?;
        let server = Apiserver::start(&scene, &store, &options).await?;
        server.kubectl().run_with_input(&["apply", "--filename=-"], manifests.as_bytes()).await?;
        let bind = ["create", "clusterrolebinding", OUTSIDER, "--clusterrole=cluster-admin"];
        server.kubectl().run(&[&bind[..], &["--user", OUTSIDER]].concat()).await?;
        let cluster = Cluster::connect(server.kubectl().kubeconfig()).await?;
        Ok(Self { scene, store, server, cluster, audit, accounts, replicas_started: 0 })
    }

    /// Starts a replica as its service account and waits until it is ready.
    pub async fn replica(&mut self, role: Role) -> Result<Replica> {
        self.replica_with(role, &[]).await
    }

    pub async fn replica_with(&mut self, role: Role, flags: &[&str]) -> Result<Replica> {
        let mut replica = self.launch(role, flags)?;
        replica.wait_ready().await?;
        Ok(replica)
    }

    /// Starts a replica without waiting for it.
    pub fn launch(&mut self, role: Role, flags: &[&str]) -> Result<Replica> {
        self.replicas_started += 1;
        let kubectl = match role {
            Role::Both => self.server.kubectl(),
            Role::Watch | Role::Process => self.server.kubectl_of(self.account(role))?,
        };
        let kubeconfig = kubectl.kubeconfig().to_owned();
        role.launch(&self.scene, self.replicas_started, &kubeconfig, flags)
    }

    /// One watcher and one processor.
    pub async fn pair(&mut self) -> Result<[Replica; 2]> {
        Ok([self.replica(Role::Watch).await?, self.replica(Role::Process).await?])
    }

    /// The user a replica is to the API server.
    #[must_use]
    pub fn account(&self, role: Role) -> &str {
        match role {
            Role::Watch => &self.accounts[0],
            Role::Process => &self.accounts[1],
            Role::Both => "admin",
        }
    }

    /// Runs `windlass labels …` as the administrator.
    pub async fn command(&self, arguments: &[&str]) -> Result<std::process::Output> {
        let kubeconfig = self.server.kubectl().kubeconfig().display().to_string();
        let login = ["--kubeconfig", kubeconfig.as_str()];
        run(&self.scene, &[&["labels"], arguments, &login].concat()).await
    }
}

fn outsider() -> Identity {
    Identity { user: OUTSIDER.to_owned(), groups: vec!["operators".to_owned()] }
}

async fn manifests(scene: &Scene) -> Result<String> {
    let output = run(scene, &["labels", "manifests"]).await?;
    anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).context("manifests are text")
}

async fn run(scene: &Scene, arguments: &[&str]) -> Result<std::process::Output> {
    let mut command = tokio::process::Command::new(scene.program(Asset::Windlass)?);
    command.args(arguments).kill_on_drop(true);
    command.output().await.with_context(|| format!("run windlass {}", arguments.join(" ")))
}

/// The namespace of the service accounts.
fn home(manifests: &str) -> Result<String> {
    let objects: Vec<Value> =
        serde_saphyr::from_multiple(manifests).context("read the manifests")?;
    let account = objects.iter().find(|object| object["kind"] == "ServiceAccount");
    let namespace = account.and_then(|account| account["metadata"]["namespace"].as_str());
    Ok(namespace.context("the manifests have a ServiceAccount in a namespace")?.to_owned())
}

/// As whom a replica holds Leases; nothing before it has said so in its log.
pub fn identity(replica: &mut Replica) -> Result<Option<String>> {
    let log = replica.process().log()?;
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut named = lines.filter_map(|line| Some(line["identity"].as_str()?.to_owned()));
    Ok(named.next())
}

/// Kills every replica at once.
pub fn kill_all(replicas: Vec<Replica>) -> Result<()> {
    replicas.into_iter().map(Replica::into_process).try_for_each(Process::kill)
}
