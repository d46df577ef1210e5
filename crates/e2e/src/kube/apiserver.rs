//! Starting kube-apiserver: keys, tokens, flags, and the check that it is ours.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use etcd_api::etcdserverpb::RangeRequest;

use super::Kubectl;
use super::kubectl::Login;
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

/// Which Kubernetes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Release {
    #[default]
    Newest,
    /// The oldest that the services are made for.
    Oldest,
}

#[derive(Clone, Debug, Default)]
pub struct ApiserverOptions {
    pub release: Release,
    /// Beside those that every API server gets.
    pub flags: Vec<String>,
    /// Who may log in beside the administrator.
    pub identities: Vec<Identity>,
}

/// Somebody the API server knows by a token.
#[derive(Clone, Debug)]
pub struct Identity {
    pub user: String,
    pub groups: Vec<String>,
}

/// A running API server, or one that was killed and may be started again.
#[derive(Debug)]
pub struct Apiserver {
    program: Program,
    process: Option<Process>,
    kubectl: Kubectl,
    others: Vec<(String, Kubectl)>,
    port: u16,
    certificate: PathBuf,
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
    /// User and token of everybody else.
    other_tokens: Vec<(String, String)>,
}

// === impl Release ===

impl Release {
    /// What a suite on it needs.
    #[must_use]
    pub const fn asset(self) -> Asset {
        match self {
            Self::Newest => Asset::KubeApiserver,
            Self::Oldest => Asset::KubeApiserver130,
        }
    }
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
        let files = Files::write(&scene.folder("kube")?, &options.identities)?;
        let [port] = ports::free()?;
        let mut arguments = base_flags(&files, store, port);
        arguments.extend(options.flags.clone());
        let program = Program {
            name: "kube-apiserver".to_owned(),
            path: scene.program(options.release.asset())?,
            arguments,
            environment: Vec::new(),
            log_folder: scene.folder("logs")?,
        };
        let mut process = Process::start(&program)?;
        let certificate = files.certificates.join("apiserver.crt");
        // Written after the certificate, which is there before it is whole.
        let key = files.certificates.join("apiserver.key");
        wait_for("kube-apiserver's certificate", READY_WAIT, async || {
            process.ensure_alive()?;
            Ok(level(key.is_file(), || "no key to the certificate yet".to_owned()))
        })
        .await?;
        let kubectl = |user: &str, token: &str| {
            let login = Login { user, token, port, certificate: &certificate };
            Kubectl::new(scene, &files.folder, &login)
        };
        let others = files.other_tokens.iter();
        let others = others.map(|(user, token)| Ok((user.clone(), kubectl(user, token)?)));
        let mut server = Self {
            others: others.collect::<Result<_>>()?,
            kubectl: kubectl("admin", &files.admin_token)?,
            program,
            process: Some(process),
            port,
            certificate,
        };
        server.wait_ready().await?;
        server.ensure_ours(store).await?;
        Ok(server)
    }

    /// The administrator's.
    #[must_use]
    pub fn kubectl(&self) -> &Kubectl {
        &self.kubectl
    }

    /// One of those named in the options.
    pub fn kubectl_of(&self, user: &str) -> Result<&Kubectl> {
        let found = self.others.iter().find(|(name, _)| name == user);
        found.map(|(_, kubectl)| kubectl).with_context(|| format!("{user} has no token"))
    }

    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// By what clients know it.
    #[must_use]
    pub fn certificate(&self) -> &Path {
        &self.certificate
    }

    /// Somebody who has a token from elsewhere, and perhaps another way to the server: the port is
    /// that of whoever passes on what arrives there.
    pub fn login(&self, scene: &Scene, user: &str, token: &str, port: u16) -> Result<Kubectl> {
        let login = Login { user, token, port, certificate: &self.certificate };
        Kubectl::new(scene, &scene.folder("kube")?, &login)
    }

    pub fn ensure_alive(&mut self) -> Result<()> {
        self.process()?.ensure_alive()
    }

    pub fn process(&mut self) -> Result<&mut Process> {
        self.process.as_mut().context("kube-apiserver is not running")
    }

    /// kill -9.
    pub fn kill(&mut self) -> Result<()> {
        self.process.take().context("kube-apiserver is not running")?.kill()
    }

    /// Starts what was killed, on the port and with the keys it had, and waits until it works.
    pub async fn restart(&mut self) -> Result<()> {
        ensure!(self.process.is_none(), "kube-apiserver is running already");
        self.process = Some(Process::start(&self.program)?);
        self.wait_ready().await
    }

    async fn wait_ready(&mut self) -> Result<()> {
        let process = self.process.as_mut().context("kube-apiserver is not running")?;
        let kubectl = &self.kubectl;
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
    fn write(folder: &Path, identities: &[Identity]) -> Result<Self> {
        let files = Self {
            folder: folder.to_owned(),
            certificates: folder.join("certs"),
            private_key: folder.join("sa.key"),
            public_key: folder.join("sa.pub"),
            tokens: folder.join("tokens.csv"),
            admin_token: token(),
            other_tokens: identities.iter().map(|each| (each.user.clone(), token())).collect(),
        };
        let key = rcgen::KeyPair::generate().context("make the service account key")?;
        write(&files.private_key, &key.serialize_pem())?;
        write(&files.public_key, &key.public_key_pem())?;
        write(&files.tokens, &files.token_file(identities))?;
        Ok(files)
    }

    fn token_file(&self, identities: &[Identity]) -> String {
        let mut text = format!("{},admin,admin,\"system:masters\"\n", self.admin_token);
        for ((user, token), identity) in self.other_tokens.iter().zip(identities) {
            text += &format!("{token},{user},{user},\"{}\"\n", identity.groups.join(","));
        }
        text
    }
}

// === impl Identity ===

impl Identity {
    /// A pod's, without the pod.
    #[must_use]
    pub fn service_account(namespace: &str, name: &str) -> Self {
        Self {
            user: format!("system:serviceaccount:{namespace}:{name}"),
            groups: vec![
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{namespace}"),
            ],
        }
    }

    /// A kubelet's.
    #[must_use]
    pub fn kubelet(node: &str) -> Self {
        Self { user: format!("system:node:{node}"), groups: vec!["system:nodes".to_owned()] }
    }
}

fn token() -> String {
    format!("{:032x}", rand::random::<u128>())
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("write {}", path.display()))
}
