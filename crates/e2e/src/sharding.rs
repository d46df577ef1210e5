//! A cluster with sharders and instances on it: a store, an API server, and whoever writes to it.
//!
//! Owns the processes and the administrator's view of the cluster. Never looks into a sharder or an
//! instance: they are judged by the objects they leave behind and by what witnesses saw.

pub mod arena;
mod clock;
pub mod evidence;
mod instance;
mod persona;
mod puppet;
mod witness;

pub use arena::Arena;
pub use clock::{epoch, monotonic};
pub use evidence::Moment;
pub use instance::{Instance, InstanceOptions, child_of};
pub use persona::Persona;
pub use puppet::{Manner, Puppet, Role};
pub use witness::Witness;

use std::path::Path;
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use sharding::manifests::{self, Options as Manifests};
use tokio::process::Command;
use tokio::sync::Mutex;

use self::evidence::Seen;
use crate::assets::Asset;
use crate::kube::{Apiserver, ApiserverOptions, Audit, Ground, Identity};
use crate::process::{Process, Program};
use crate::replica::Replica;
use crate::scene::Scene;
use crate::store::{Store, StoreOptions};

/// Of a Deployment that nobody runs: there is no controller manager in this cluster.
const IMAGE: &str = "windlass";

/// The role that gathers what rings add to the sharder's rights.
const GATHERING_ROLE: &str = "windlass-sharder-rings";

/// Any that has the standard library.
const PYTHON: &str = "python3";

/// The cluster and everything that runs for it.
pub struct World {
    pub scene: Arc<Scene>,
    pub store: Store,
    pub server: Apiserver,
    /// What instances wrote, and what the server answered.
    pub audit: Audit,
    /// The administrator's.
    pub client: Client,
    witness: Witness,
    started: AtomicUsize,
    /// Held while rights are gathered: whoever reads first must not write last.
    gathering: Mutex<()>,
}

// === impl World ===

impl World {
    /// What a suite in this world needs.
    #[must_use]
    pub fn needs(ground: Ground) -> Vec<Asset> {
        [&ground.needs()[..], &[Asset::Windlass, Asset::Checksums]].concat()
    }

    /// Starts store and API server and applies the manifests; no sharder runs yet.
    pub async fn start(scene: Arc<Scene>, ground: Ground) -> Result<Self> {
        let lane = ground.store;
        let audit = Audit::new(&scene, &audited())?;
        let store_options = StoreOptions::new(lane, "store").flags(lane.without_sync());
        let store = Store::start(&scene, &store_options).await?;
        let witness = Witness::start(&store)?;
        let flags = [audit.flags(), vec![witness::STORED_AS.to_owned()]].concat();
        let options =
            ApiserverOptions { release: ground.release, flags, identities: vec![sharder()] };
        let server = Apiserver::start(&scene, &store, &options).await?;
        let manifests =
            Manifests { image: IMAGE.to_owned(), replicas: 1, home: manifests::HOME.to_owned() };
        server.kubectl().create(&manifests::objects(&manifests)).await?;
        let defined = ["wait", "--for=condition=Established", "customresourcedefinition"];
        server.kubectl().run(&[&defined[..], &["rings.windlass.dev"]].concat()).await?;
        let client = Client::try_from(config(server.kubectl().kubeconfig()).await?)?;
        let (started, gathering) = (AtomicUsize::new(0), Mutex::new(()));
        Ok(Self { scene, store, server, audit, client, witness, started, gathering })
    }

    /// Does what no controller manager does in this cluster: gives the sharder's role the rules of those
    /// roles that it selects.
    pub async fn gather_rights(&self) -> Result<()> {
        let _alone = self.gathering.lock().await;
        let kubectl = self.server.kubectl();
        let role = kubectl.json(&["get", "clusterrole", GATHERING_ROLE]).await?;
        let selectors = role["aggregationRule"]["clusterRoleSelectors"].as_array();
        let mut rules = Vec::new();
        for selector in selectors.context("the role gathers others")? {
            let labels = selector["matchLabels"].as_object().context("it selects by labels")?;
            let terms = labels
                .iter()
                .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
            let selector = format!("--selector={}", terms.collect::<Vec<_>>().join(","));
            let roles = kubectl.json(&["get", "clusterroles", &selector]).await?;
            let roles = roles["items"].as_array().cloned().unwrap_or_default();
            let gathered = roles.iter().filter_map(|role| role["rules"].as_array());
            rules.extend(gathered.flatten().cloned());
        }
        let patch = format!("--patch={}", json!({ "rules": rules }));
        kubectl.run(&["patch", "clusterrole", GATHERING_ROLE, "--type=merge", &patch]).await?;
        Ok(())
    }

    /// Starts a sharder and waits until it is ready.
    pub async fn sharder(&self) -> Result<Replica> {
        self.sharder_in(Vec::new()).await
    }

    /// The same, with more in its environment.
    pub async fn sharder_in(&self, environment: Vec<(String, String)>) -> Result<Replica> {
        let kubeconfig = self.server.kubectl_of(&sharder().user)?.kubeconfig().display();
        let arguments = ["sharder", "run"].map(ToOwned::to_owned).into_iter();
        let arguments = arguments.chain([format!("--kubeconfig={kubeconfig}")]).collect();
        let name = format!("sharder-{}", self.started());
        let mut replica = Replica::launch_in(&self.scene, &name, arguments, environment)?;
        replica.wait_ready().await?;
        Ok(replica)
    }

    /// Starts an instance of the ring, without waiting for it.
    pub async fn instance(&self, arena: &mut Arena, id: &str) -> Result<Instance> {
        self.instance_with(arena, id, &InstanceOptions::default()).await
    }

    pub async fn instance_with(
        &self,
        arena: &mut Arena,
        id: &str,
        options: &InstanceOptions,
    ) -> Result<Instance> {
        Instance::start(self, arena, id, options).await
    }

    /// Starts the instance that is written in Python and knows nothing of the library.
    pub async fn python_instance(&self, arena: &Arena, id: &str) -> Result<Process> {
        let pass = instance::pass(self, arena, id, None).await?;
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/python/instance.py");
        let certificate = self.server.certificate();
        let mut arguments = vec![script.to_owned()];
        arguments.extend([
            format!("--server=https://127.0.0.1:{}", self.server.port()),
            format!("--token={}", pass.token),
            format!("--ring={}", arena.name),
            format!("--id={id}"),
            format!("--namespace={}", arena.name),
            format!("--seconds={}", arena::LEASE_STEADY.as_secs()),
        ]);
        Process::start(&Program {
            name: format!("{}-{id}-{}", arena.name, self.started()),
            path: PYTHON.into(),
            arguments,
            environment: vec![("SSL_CERT_FILE".to_owned(), certificate.display().to_string())],
            log_folder: self.scene.folder("logs")?,
        })
    }

    /// What a person who types a command is told, as the administrator.
    pub async fn command(&self, arguments: &[&str]) -> Result<Output> {
        let mut command = Command::new(self.scene.program(Asset::Windlass)?);
        command.args(arguments).arg("--kubeconfig").arg(self.server.kubectl().kubeconfig());
        command.kill_on_drop(true).output().await.with_context(|| format!("run {arguments:?}"))
    }

    /// A number that no process of this world has had.
    fn started(&self) -> usize {
        self.started.fetch_add(1, Ordering::Relaxed)
    }

    /// All changes so far.
    async fn seen(&self) -> Result<Vec<Seen>> {
        self.witness.seen(&self.client).await
    }

    /// A connection as somebody else, with every right that RBAC can give: what is refused then is
    /// refused by admission.
    pub async fn client_as(&self, persona: &Persona) -> Result<Client> {
        let mut config = config(self.server.kubectl().kubeconfig()).await?;
        persona.put_on(&mut config.auth_info);
        Client::try_from(config).with_context(|| format!("connect as {}", persona.user))
    }

    /// A new namespace.
    pub async fn namespace(&self, name: &str) -> Result<()> {
        self.server.kubectl().run(&["create", "namespace", name]).await?;
        Ok(())
    }
}

/// Why no instance in Python can be started, if none can.
#[must_use]
pub fn lack_of_python() -> Option<String> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&folders).any(|folder| folder.join(PYTHON).is_file());
    (!is_there).then(|| format!("there is no {PYTHON} on the PATH"))
}

fn sharder() -> Identity {
    Identity::service_account(manifests::HOME, manifests::NAME)
}

/// What accounts write to objects that can be sharded, with what came of it.
fn audited() -> Value {
    json!([
        {
            "level": "RequestResponse",
            "userGroups": ["system:serviceaccounts"],
            "verbs": ["create", "update", "patch", "delete"],
            "resources": [{"group": "", "resources": ["secrets", "configmaps"]}],
        },
        {"level": "None"},
    ])
}

async fn config(kubeconfig: &Path) -> Result<Config> {
    let config = Kubeconfig::read_from(kubeconfig).context("read the kubeconfig")?;
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await;
    config.context("understand the kubeconfig")
}
