//! One server under load: its process, its folder, its address. Owns starting, readiness and the
//! end; never measures.

use std::{
    fs::{self, File},
    io,
    net::{Ipv4Addr, SocketAddr},
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use etcd_api::etcdserverpb::{MemberListRequest, MemberListResponse, RangeResponse};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    net::TcpListener,
    process::{Child, Command},
    time::{Instant, sleep, timeout},
};

use super::subject::{Launch, Place, Role, Subject};
use crate::{
    ceiling,
    grpc::{self, Pool},
    shape,
};

/// A store with gigabytes to read back is given this long.
const READY_MAX: Duration = Duration::from_secs(180);

/// Fine enough for the restart time to mean something.
const PROBE_PAUSE: Duration = Duration::from_millis(2);

const STOP_MAX: Duration = Duration::from_secs(30);

/// A port can be lost to another process between finding it and listening on it.
const STARTS_MAX: usize = 3;

/// Room for the fill, which takes etcd several gigabytes.
const QUOTA_BYTES: u64 = 16 * 1024 * 1024 * 1024;

/// What a failed start shows of the server's own words.
const LOG_TAIL_BYTES: usize = 2000;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("cannot find a free port")]
    Port(#[source] io::Error),
    #[error("cannot prepare {}", path.display())]
    Folder {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot start {}", program.display())]
    Spawn {
        program: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{role} ended before it was ready ({status}):\n{log}")]
    Ended { role: Role, status: ExitStatus, log: String },
    #[error("{role} was not ready after {} s", READY_MAX.as_secs())]
    NotReady {
        role: Role,
        #[source]
        source: Option<grpc::Error>,
    },
    #[error("{role} could not be awaited")]
    Wait {
        role: Role,
        #[source]
        source: io::Error,
    },
    #[error("{role} ended badly when asked to stop ({status}):\n{log}")]
    Stop { role: Role, status: ExitStatus, log: String },
    #[error("{role} was not started here, so it cannot be restarted")]
    NotOurs { role: Role },
}

pub(crate) struct Server {
    role: Role,
    address: SocketAddr,
    pid: Option<u32>,
    /// Absent if the server was running already.
    process: Option<Process>,
}

struct Process {
    child: Child,
    launch: Launch,
    /// Comes back in the member list, which tells our store from a stranger on its port.
    name: String,
    peer: SocketAddr,
    folder: PathBuf,
    objects: usize,
}

/// Where and with what a server starts.
pub(crate) struct Site<'a> {
    /// Empty, and the server's alone.
    pub(crate) folder: &'a Path,
    /// Objects a ceiling answers with.
    pub(crate) objects: usize,
}

// === impl Server ===

impl Server {
    /// Starts the subject, or takes it as it runs, and waits until it answers.
    pub(crate) async fn start(subject: &Subject, site: &Site<'_>) -> Result<Self, Error> {
        let role = subject.role;
        let launch = match &subject.place {
            Place::Launched(launch) => launch,
            Place::Running(running) => {
                let address = running.address;
                let mut server = Self { role, address, pid: running.pid, process: None };
                server.ready().await?;
                return Ok(server);
            }
        };
        let mut starts = 1;
        loop {
            match Self::launch(role, launch, site).await {
                Err(Error::Ended { .. }) if starts < STARTS_MAX => starts += 1,
                outcome => return outcome,
            }
        }
    }

    async fn launch(role: Role, launch: &Launch, site: &Site<'_>) -> Result<Self, Error> {
        let address = free_address().await?;
        let peer = free_address().await?;
        let folder = site.folder.to_owned();
        fs::create_dir_all(&folder)
            .map_err(|source| Error::Folder { path: folder.clone(), source })?;
        let name = format!("bench-{}-{}", std::process::id(), address.port());
        let flags = flags(role, &Flags { name: &name, address, peer, site });
        let child = spawn(launch, flags, &folder)?;
        let pid = child.id();
        let process =
            Process { child, launch: launch.clone(), name, peer, folder, objects: site.objects };
        let mut server = Self { role, address, pid, process: Some(process) };
        server.ready().await?;
        Ok(server)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Whether it was started for this row, with nothing in it.
    pub(crate) fn is_fresh(&self) -> bool {
        self.process.is_some()
    }

    /// The server's data, if it keeps any here.
    pub(crate) fn data_dir(&self) -> Option<PathBuf> {
        let process = self.process.as_ref()?;
        (self.role != Role::Ceiling).then(|| data_dir(&process.folder))
    }

    /// Stops the server and starts it on the same data; how long the start took.
    pub(crate) async fn restart(&mut self) -> Result<Duration, Error> {
        let role = self.role;
        let address = self.address;
        let process = self.process.as_mut().ok_or(Error::NotOurs { role })?;
        stop(role, process).await?;
        let site = Site { folder: &process.folder, objects: process.objects };
        let flags =
            flags(role, &Flags { name: &process.name, address, peer: process.peer, site: &site });
        let began = Instant::now();
        process.child = spawn(&process.launch, flags, &process.folder)?;
        self.pid = process.child.id();
        self.ready().await?;
        Ok(began.elapsed())
    }

    pub(crate) async fn stop(mut self) -> Result<(), Error> {
        match &mut self.process {
            Some(process) => stop(self.role, process).await,
            None => Ok(()),
        }
    }

    async fn ready(&mut self) -> Result<(), Error> {
        let role = self.role;
        let began = Instant::now();
        let mut last = None;
        while began.elapsed() < READY_MAX {
            self.check_alive()?;
            match timeout(READY_MAX, self.probe()).await {
                Ok(Ok(true)) => return self.check_alive(),
                Ok(Ok(false)) => {}
                Ok(Err(error)) => last = Some(error),
                Err(_elapsed) => break,
            }
            sleep(PROBE_PAUSE).await;
        }
        Err(Error::NotReady { role, source: last })
    }

    fn check_alive(&mut self) -> Result<(), Error> {
        let role = self.role;
        let Some(process) = &mut self.process else { return Ok(()) };
        match process.child.try_wait().map_err(|source| Error::Wait { role, source })? {
            None => Ok(()),
            Some(status) => Err(Error::Ended { role, status, log: log_tail(&process.folder) }),
        }
    }

    /// Whether the server answers a linearizable read, and is the one that was started.
    async fn probe(&self) -> Result<bool, grpc::Error> {
        let pool = Pool::open(self.address, 1).await?;
        let channel = pool.channel(0);
        let read = shape::get(shape::short_key(0));
        channel.unary::<RangeResponse>("/etcdserverpb.KV/Range", &read).await?;
        let Some(process) = self.process.as_ref().filter(|_| self.role.is_store()) else {
            return Ok(true);
        };
        let request = MemberListRequest { linearizable: true };
        let path = "/etcdserverpb.Cluster/MemberList";
        let list = channel.unary::<MemberListResponse>(path, &request).await?;
        Ok(list.members.iter().any(|member| member.name == process.name))
    }
}

struct Flags<'a> {
    name: &'a str,
    address: SocketAddr,
    peer: SocketAddr,
    site: &'a Site<'a>,
}

fn flags(role: Role, flags: &Flags<'_>) -> Vec<String> {
    let Flags { name, address, peer, site } = flags;
    let data_dir = data_dir(site.folder);
    match role {
        Role::Windlass | Role::Etcd => vec![
            format!("--name={name}"),
            format!("--data-dir={}", data_dir.display()),
            format!("--listen-client-urls=http://{address}"),
            format!("--advertise-client-urls=http://{address}"),
            format!("--listen-peer-urls=http://{peer}"),
            format!("--initial-advertise-peer-urls=http://{peer}"),
            format!("--initial-cluster={name}=http://{peer}"),
            format!("--quota-backend-bytes={QUOTA_BYTES}"),
            "--log-level=error".to_owned(),
        ],
        Role::Ceiling | Role::DurableCeiling => {
            let data_dir = (role == Role::DurableCeiling).then_some(data_dir);
            let objects = site.objects;
            ceiling::Options { listen: *address, objects, data_dir }.to_args()
        }
    }
}

fn data_dir(folder: &Path) -> PathBuf {
    folder.join("data")
}

fn spawn(launch: &Launch, flags: Vec<String>, folder: &Path) -> Result<Child, Error> {
    let log = folder.join("log");
    let failed = |source| Error::Folder { path: log.clone(), source };
    let out = File::options().create(true).append(true).open(&log).map_err(failed)?;
    let err = out.try_clone().map_err(failed)?;
    Command::new(&launch.program)
        .args(&launch.args)
        .args(flags)
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|source| Error::Spawn { program: launch.program.clone(), source })
}

/// Asks the process to end and, if it does not, ends it.
async fn stop(role: Role, process: &mut Process) -> Result<(), Error> {
    signal(&process.child, Signal::TERM);
    let status = match timeout(STOP_MAX, process.child.wait()).await {
        Ok(status) => status,
        Err(_elapsed) => {
            signal(&process.child, Signal::KILL);
            process.child.wait().await
        }
    };
    let status = status.map_err(|source| Error::Wait { role, source })?;
    let was_asked = status.success() || status.signal() == Some(Signal::TERM.as_raw());
    if was_asked {
        return Ok(());
    }
    Err(Error::Stop { role, status, log: log_tail(&process.folder) })
}

fn signal(child: &Child, signal: Signal) {
    let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    if let Some(group) = group {
        // It fails only if the group is gone, which waiting will show.
        let _gone = kill_process_group(group, signal);
    }
}

async fn free_address() -> Result<SocketAddr, Error> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(Error::Port)?;
    listener.local_addr().map_err(Error::Port)
}

fn log_tail(folder: &Path) -> String {
    let log = fs::read(folder.join("log")).unwrap_or_default();
    String::from_utf8_lossy(&log[log.len().saturating_sub(LOG_TAIL_BYTES)..]).into_owned()
}
