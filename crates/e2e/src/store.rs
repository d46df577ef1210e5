//! A store as a process: etcd, or windlass called `etcd`, started with the same flags.
//!
//! Owns its ports and data folder, so that it can be killed and started again as the same member.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use etcd_api::etcdserverpb::MemberListRequest;

use crate::assets::Asset;
use crate::client::Client;
use crate::process::{Process, Program};
use crate::report::say;
use crate::scene::Scene;
use crate::wait::{Level, wait_for};
use crate::{http, ports};

/// A store on an old disk, replaying a long journal, must be given time.
const READY_WAIT: Duration = Duration::from_secs(60);

/// How often a store is started when another process took its port.
const STARTS_MAX: usize = 3;

/// Whose store a suite runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    Etcd,
    Etcd36,
    Windlass,
}

/// How to start a store.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    pub lane: Lane,
    /// What its logs and data are called after; unique within a scene.
    pub label: String,
    /// Beside those that every store gets.
    pub flags: Vec<String>,
    /// A folder in another place than the scene's.
    pub data_dir: Option<PathBuf>,
    /// Clients speak TLS; the flags say how. Whoever starts such a store waits for it with a client
    /// that has the certificates.
    pub is_encrypted: bool,
    /// A name and its password, where nobody else may list the members.
    pub login: Option<(&'static str, &'static str)>,
}

/// A running store, or one that was killed and may be started again.
#[derive(Debug)]
pub struct Store {
    program: Program,
    /// Random, and expected back in the member list: a foreign server answers health checks too.
    name: String,
    data_dir: PathBuf,
    client_port: u16,
    is_encrypted: bool,
    login: Option<(&'static str, &'static str)>,
    process: Option<Process>,
}

// === impl Lane ===

impl Lane {
    /// What a suite in this lane needs.
    #[must_use]
    pub fn asset(self) -> Asset {
        match self {
            Self::Etcd => Asset::Etcd,
            Self::Etcd36 => Asset::Etcd36,
            Self::Windlass => Asset::Windlass,
        }
    }

    fn program(self, scene: &Scene) -> Result<PathBuf> {
        match self {
            Self::Windlass => scene.windlass_as_etcd(),
            Self::Etcd | Self::Etcd36 => scene.program(self.asset()),
        }
    }

    /// A store whose own durability is not the subject need not wait for the disk.
    #[must_use]
    pub fn without_sync(self) -> Vec<String> {
        match self {
            Self::Windlass => Vec::new(),
            Self::Etcd | Self::Etcd36 => vec!["--unsafe-no-fsync".to_owned()],
        }
    }
}

// === impl StoreOptions ===

impl StoreOptions {
    #[must_use]
    pub fn new(lane: Lane, label: &str) -> Self {
        Self {
            lane,
            label: label.to_owned(),
            flags: Vec::new(),
            data_dir: None,
            is_encrypted: false,
            login: None,
        }
    }

    #[must_use]
    pub fn flags(mut self, flags: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.flags.extend(flags.into_iter().map(Into::into));
        self
    }
}

// === impl Store ===

impl Store {
    /// Starts a store and waits until it serves; on other ports if some were taken meanwhile.
    pub async fn start(scene: &Scene, options: &StoreOptions) -> Result<Self> {
        for attempt in 1..=STARTS_MAX {
            let mut store = Self::prepare(scene, options)?;
            match store.restart().await {
                Ok(()) => return Ok(store),
                Err(error) if attempt < STARTS_MAX && is_address_in_use(&error) => {
                    say(&format!("{}: start {attempt}: a port was taken meanwhile", options.label));
                }
                Err(error) => return Err(error),
            }
        }
        bail!("{}: every port was taken, {STARTS_MAX} times", options.label)
    }

    /// Chooses names, folders and ports; starts nothing.
    pub fn prepare(scene: &Scene, options: &StoreOptions) -> Result<Self> {
        let [client_port, peer_port] = ports::free()?;
        let name = format!("{}-{:08x}", options.label, rand::random::<u32>());
        let data_dir = match &options.data_dir {
            Some(folder) => folder.clone(),
            None => scene.folder(&options.label)?.join("data"),
        };
        let is_encrypted = options.is_encrypted;
        let mut arguments = base_flags(&name, &endpoint(client_port, is_encrypted), peer_port);
        arguments.extend(["--data-dir".to_owned(), data_dir.display().to_string()]);
        arguments.extend(options.flags.clone());
        let program = Program {
            name: options.label.clone(),
            path: options.lane.program(scene)?,
            arguments,
            environment: Vec::new(),
            log_folder: scene.folder("logs")?,
        };
        let login = options.login;
        Ok(Self { program, name, data_dir, client_port, is_encrypted, login, process: None })
    }

    /// Starts what is not running, on the ports and data it had, and waits until it serves.
    pub async fn restart(&mut self) -> Result<()> {
        self.launch()?;
        self.wait_ready().await.with_context(|| format!("wait for {}", self.name))
    }

    /// Starts the process without waiting for it to serve.
    pub fn launch(&mut self) -> Result<()> {
        ensure!(self.process.is_none(), "{} is running already", self.name);
        self.process = Some(Process::start(&self.program)?);
        Ok(())
    }

    async fn wait_ready(&mut self) -> Result<()> {
        let (port, name, login) = (self.client_port, self.name.clone(), self.login);
        let process = self.process.as_mut().context("the store was not started")?;
        wait_for("the store to be ready", READY_WAIT, async || {
            process.ensure_alive()?;
            match http::get(port, "/readyz").await {
                Ok(answer) if answer.status == 200 => Ok(Level::Reached(())),
                Ok(answer) => Ok(Level::Below(format!("{}: {}", answer.status, answer.body))),
                Err(error) => Ok(Level::Below(format!("{error:#}"))),
            }
        })
        .await?;
        ensure_ours(port, &name, login).await
    }

    pub fn client(&self) -> Result<Client> {
        Client::to(self.client_port)
    }

    #[must_use]
    pub fn port(&self) -> u16 {
        self.client_port
    }

    #[must_use]
    pub fn data_dir(&self) -> &PathBuf {
        &self.data_dir
    }

    #[must_use]
    pub fn endpoint(&self) -> String {
        endpoint(self.client_port, self.is_encrypted)
    }

    pub fn process(&mut self) -> Result<&mut Process> {
        self.process.as_mut().context("the store is not running")
    }

    /// kill -9, as a power cut.
    pub fn kill(&mut self) -> Result<()> {
        self.process.take().context("the store is not running")?.kill()
    }

    /// Kills it and removes its data: a long run would fill the disk with what nobody looks at.
    pub fn discard(mut self) -> Result<()> {
        self.kill()?;
        fs::remove_dir_all(&self.data_dir).context("remove the store's data")
    }

    /// SIGTERM and a clean end.
    pub async fn stop(&mut self) -> Result<()> {
        let process = self.process.take().context("the store is not running")?;
        process.stop().await?;
        Ok(())
    }
}

fn endpoint(port: u16, is_encrypted: bool) -> String {
    let scheme = if is_encrypted { "https" } else { "http" };
    format!("{scheme}://127.0.0.1:{port}")
}

fn base_flags(name: &str, client: &str, peer_port: u16) -> Vec<String> {
    let peer = format!("http://127.0.0.1:{peer_port}");
    let flags = [
        ("--name", name),
        ("--listen-client-urls", client),
        ("--advertise-client-urls", client),
        ("--listen-peer-urls", &peer),
        ("--initial-advertise-peer-urls", &peer),
        ("--initial-cluster", &format!("{name}={peer}")),
    ];
    flags.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value.to_owned()]).collect()
}

async fn ensure_ours(
    port: u16,
    name: &str,
    login: Option<(&'static str, &'static str)>,
) -> Result<()> {
    let mut client = Client::to(port)?;
    if let Some((name, password)) = login {
        client = client.log_in(name, password).await?;
    }
    let members = client
        .cluster()
        .member_list(client.request(MemberListRequest { linearizable: false }))
        .await
        .context("list the members")?
        .into_inner()
        .members;
    let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
    // A store that shares its journal names the others too.
    ensure!(names.contains(&name), "port {port} belongs to {names:?}, not to our {name}");
    Ok(())
}

fn is_address_in_use(error: &anyhow::Error) -> bool {
    format!("{error:#}").to_lowercase().contains("address already in use")
}
