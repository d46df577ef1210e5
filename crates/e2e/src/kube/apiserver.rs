//! Starting kube-apiserver: keys, tokens, flags, and the check that it is ours.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use etcd_api::etcdserverpb::RangeRequest;

use super::Kubectl;
use crate::assets::Asset;
use crate::ports;
use crate::process::{Process, Program};
use crate::report::say;
use crate::scene::Scene;
use crate::store::Store;
use crate::wait::{Level, wait_for};

/// On two shared cores a cold start takes tens of seconds.
const READY_WAIT: Duration = Duration::from_secs(180);

/// How often it is started when another process took its port.
const STARTS_MAX: usize = 3;

#[derive(Clone, Debug, Default)]
pub struct ApiserverOptions {
    /// Beside those that every API server gets.
    pub flags: Vec<String>,
}

/// A running API server.
#[derive(Debug)]
pub struct Apiserver {
    process: Process,
    kubectl: Kubectl,
}

/// What an API server reads from files.
struct Files {
    folder: PathBuf,
    certificates: PathBuf,
    private_key: PathBuf,
    public_key: PathBuf,
    tokens: PathBuf,
    /// The bearer token of `system:masters`; random, so that a foreign server refuses it.
    admin_token: String,
}

// === impl Apiserver ===

impl Apiserver {
    /// Starts an API server on the store and waits until it works and is proven to be ours.
    pub async fn start(scene: &Scene, store: &Store, options: &ApiserverOptions) -> Result<Self> {
        for attempt in 1..=STARTS_MAX {
            match Self::try_start(scene, store, options).await {
                Err(error) if attempt < STARTS_MAX && is_address_in_use(&error) => {
                    say(&format!("kube-apiserver: start {attempt}: its port was taken meanwhile"));
                }
                outcome => return outcome,
            }
        }
        bail!("kube-apiserver: its port was taken {STARTS_MAX} times")
    }

    async fn try_start(scene: &Scene, store: &Store, options: &ApiserverOptions) -> Result<Self> {
        let files = Files::write(&scene.folder("kube")?)?;
        let [port] = ports::free()?;
        let mut arguments = base_flags(&files, store, port);
        arguments.extend(options.flags.clone());
        let mut process = Process::start(&Program {
            name: "kube-apiserver".to_owned(),
            path: scene.program(Asset::KubeApiserver)?,
            arguments,
            environment: Vec::new(),
            log_folder: scene.folder("logs")?,
        })?;
        let certificate = files.certificates.join("apiserver.crt");
        wait_for("kube-apiserver's certificate", READY_WAIT, async || {
            process.ensure_alive()?;
            Ok(level(certificate.is_file(), || "no certificate yet".to_owned()))
        })
        .await?;
        let kubectl = Kubectl::new(scene, &files.folder, port, &files.admin_token, &certificate)?;
        wait_ready(&mut process, &kubectl).await?;
        let mut server = Self { process, kubectl };
        server.ensure_ours(store).await?;
        Ok(server)
    }

    #[must_use]
    pub fn kubectl(&self) -> &Kubectl {
        &self.kubectl
    }

    pub fn ensure_alive(&mut self) -> Result<()> {
        self.process.ensure_alive()
    }

    /// What was written through this server must be found in our store.
    async fn ensure_ours(&mut self, store: &Store) -> Result<()> {
        let name = format!("ours-{:016x}", rand::random::<u64>());
        self.kubectl.run(&["create", "configmap", &name, "--namespace=default"]).await?;
        let key = format!("/registry/configmaps/default/{name}");
        let request = RangeRequest { key: key.into(), ..RangeRequest::default() };
        let found = store.client()?.kv().range(request).await.context("look for our ConfigMap")?;
        ensure!(found.into_inner().count == 1, "the API server does not write to our store");
        Ok(())
    }
}

async fn wait_ready(process: &mut Process, kubectl: &Kubectl) -> Result<()> {
    wait_for("kube-apiserver to be ready", READY_WAIT, async || {
        process.ensure_alive()?;
        let ready = kubectl.run(&["get", "--raw", "/readyz"]).await;
        let outcome = match ready {
            Ok(_) => kubectl.run(&["get", "namespace", "default"]).await,
            error => error,
        };
        Ok(level(outcome.is_ok(), || format!("{outcome:?}")))
    })
    .await
}

fn level(is_reached: bool, status: impl FnOnce() -> String) -> Level<()> {
    if is_reached { Level::Reached(()) } else { Level::Below(status()) }
}

fn base_flags(files: &Files, store: &Store, port: u16) -> Vec<String> {
    let path = |path: &Path| path.display().to_string();
    let flags = [
        ("etcd-servers", store.endpoint()),
        ("bind-address", "127.0.0.1".to_owned()),
        ("secure-port", port.to_string()),
        ("advertise-address", "127.0.0.1".to_owned()),
        ("cert-dir", path(&files.certificates)),
        ("endpoint-reconciler-type", "none".to_owned()),
        ("service-cluster-ip-range", "10.0.0.0/24".to_owned()),
        ("service-account-issuer", format!("https://127.0.0.1:{port}/")),
        ("service-account-key-file", path(&files.public_key)),
        ("service-account-signing-key-file", path(&files.private_key)),
        ("token-auth-file", path(&files.tokens)),
        ("authorization-mode", "Node,RBAC".to_owned()),
        ("enable-admission-plugins", "NodeRestriction".to_owned()),
        ("disable-admission-plugins", "ServiceAccount".to_owned()),
    ];
    flags.into_iter().map(|(flag, value)| format!("--{flag}={value}")).collect()
}

fn is_address_in_use(error: &anyhow::Error) -> bool {
    format!("{error:#}").contains("address already in use")
}

// === impl Files ===

impl Files {
    fn write(folder: &Path) -> Result<Self> {
        let files = Self {
            folder: folder.to_owned(),
            certificates: folder.join("certs"),
            private_key: folder.join("sa.key"),
            public_key: folder.join("sa.pub"),
            tokens: folder.join("tokens.csv"),
            admin_token: format!("{:032x}", rand::random::<u128>()),
        };
        let key = rcgen::KeyPair::generate().context("make the service account key")?;
        write(&files.private_key, &key.serialize_pem())?;
        write(&files.public_key, &key.public_key_pem())?;
        write(&files.tokens, &format!("{},admin,1,\"system:masters\"\n", files.admin_token))?;
        Ok(files)
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("write {}", path.display()))
}
