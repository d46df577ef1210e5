//! The members of one cluster: their processes, addresses and ends. Never measures.

use std::{
    fs::{self, File},
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use etcd_api::etcdserverpb::{
    MemberListRequest, MemberListResponse, RangeResponse, StatusRequest, StatusResponse,
};
use tokio::{
    net::TcpListener,
    process::{Child, Command},
    time::{Instant, sleep, timeout},
};

use crate::{grpc::Pool, process, shape, store::work};

const READY_MAX: Duration = Duration::from_secs(120);
/// Fine enough for times to mean something.
const PROBE_PAUSE: Duration = Duration::from_millis(5);
/// A call to a member that is in no state to answer.
const PROBE_MAX: Duration = Duration::from_secs(2);

/// Whose members they are.
pub(super) enum Kind {
    Windlass { program: PathBuf, journal: String, is_unsafe_allowed: bool },
    Etcd { program: PathBuf },
}

pub(super) struct Crew {
    kind: Kind,
    members: Vec<Member>,
}

struct Member {
    address: SocketAddr,
    flags: Vec<String>,
    log: PathBuf,
    /// `None` while it is down.
    child: Option<Child>,
}

// === impl Kind ===

impl Kind {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Windlass { .. } => "windlass",
            Self::Etcd { .. } => "etcd",
        }
    }

    /// Members of a shared journal keep nothing, and find each other there.
    fn own_flags(&self, folder: &Path, at: usize, all: &[String]) -> Vec<String> {
        match self {
            Self::Windlass { .. } => Vec::new(),
            Self::Etcd { .. } => vec![
                format!("--data-dir={}", folder.join(format!("m{at}")).display()),
                format!("--initial-cluster={}", all.join(",")),
            ],
        }
    }

    /// The program, and the words before its flags.
    fn command(&self) -> (&Path, Vec<String>) {
        match self {
            Self::Etcd { program } => (program, Vec::new()),
            Self::Windlass { program, journal, is_unsafe_allowed } => {
                let mut words: Vec<String> =
                    ["store", "serve", "--journal", journal.as_str()].map(ToOwned::to_owned).into();
                words.extend(is_unsafe_allowed.then(|| "--allow-unsafe".to_owned()));
                (program, words)
            }
        }
    }
}

// === impl Crew ===

impl Crew {
    /// Starts all members and waits until each answers a linearizable read and takes a write: who writes
    /// is settled only after the first is there.
    pub(super) async fn start(kind: Kind, folder: &Path, count: usize) -> Result<Self> {
        if folder.exists() {
            fs::remove_dir_all(folder).context("remove what an earlier run left")?;
        }
        fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
        let mut places = Vec::new();
        for _ in 0..count {
            places.push((free_address().await?, free_address().await?));
        }
        let all: Vec<String> = (0..).zip(&places).map(|(at, place)| peer(at, place.1)).collect();
        let members = (0..).zip(&places).map(|(at, place)| Member {
            address: place.0,
            flags: [flags(at, *place), kind.own_flags(folder, at, &all)].concat(),
            log: folder.join(format!("m{at}.log")),
            child: None,
        });
        let members = members.collect();
        let mut crew = Self { kind, members };
        for index in 0..count {
            crew.launch(index)?;
        }
        for index in 0..count {
            crew.ready(index).await?;
        }
        for address in crew.addresses() {
            writable(address).await?;
        }
        Ok(crew)
    }

    fn launch(&mut self, index: usize) -> Result<()> {
        let (program, words) = self.kind.command();
        let mut command = Command::new(program);
        let member = &mut self.members[index];
        let log = File::options().create(true).append(true).open(&member.log).context("a log")?;
        command.args(words).args(&member.flags).stdin(Stdio::null()).kill_on_drop(true);
        command.stdout(log.try_clone().context("share the log")?).stderr(log);
        member.child = Some(command.spawn().with_context(|| format!("{}", program.display()))?);
        Ok(())
    }

    /// Starts a member that is down; how long it took until it answered a linearizable read.
    pub(super) async fn restart(&mut self, index: usize) -> Result<Duration> {
        let began = Instant::now();
        self.launch(index)?;
        self.ready(index).await?;
        Ok(began.elapsed())
    }

    /// SIGKILL.
    pub(super) async fn kill(&mut self, index: usize) -> Result<()> {
        let mut child = self.members[index].child.take().context("the member runs")?;
        child.kill().await.context("kill a member")
    }

    async fn ready(&mut self, index: usize) -> Result<()> {
        let began = Instant::now();
        while began.elapsed() < READY_MAX {
            let member = &mut self.members[index];
            let child = member.child.as_mut().context("the member runs")?;
            let ended = child.try_wait().context("look at a member")?;
            ensure!(ended.is_none(), "a member ended; its log is {}", member.log.display());
            if timeout(PROBE_MAX, reads(member.address)).await.is_ok_and(|read| read.is_ok()) {
                return Ok(());
            }
            sleep(PROBE_PAUSE).await;
        }
        bail!("a member is not ready after {} s", READY_MAX.as_secs())
    }

    /// Waits until each member knows all that run, and nobody else.
    pub(super) async fn settle(&self) -> Result<()> {
        for address in self.addresses() {
            let began = Instant::now();
            while !timeout(PROBE_MAX, listed(address))
                .await
                .is_ok_and(|count| count.is_ok_and(|count| count == self.members.len()))
            {
                ensure!(began.elapsed() < READY_MAX, "a member lists others than those that run");
                sleep(PROBE_PAUSE).await;
            }
        }
        Ok(())
    }

    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.members.iter().map(|member| member.address).collect()
    }

    pub(super) fn pids(&self) -> Vec<u32> {
        let children = self.members.iter().filter_map(|member| member.child.as_ref());
        children.filter_map(Child::id).collect()
    }

    pub(super) fn resident_bytes(&self) -> Result<u64> {
        let each = self.pids().into_iter().map(process::resident_bytes);
        Ok(each.sum::<Result<u64, _>>()?)
    }

    /// The place of the member that writes, as it says itself.
    pub(super) async fn writer(&self) -> Result<usize> {
        let began = Instant::now();
        while began.elapsed() < READY_MAX {
            for (index, member) in self.members.iter().enumerate() {
                let asked = timeout(PROBE_MAX, status(member.address)).await;
                let Ok(Ok(status)) = asked else { continue };
                let own = status.header.map(|header| header.member_id);
                if own == Some(status.leader) {
                    return Ok(index);
                }
            }
            sleep(PROBE_PAUSE).await;
        }
        bail!("no member writes")
    }
}

async fn writable(address: SocketAddr) -> Result<()> {
    let began = Instant::now();
    while began.elapsed() < READY_MAX {
        if timeout(PROBE_MAX, writes(address)).await.is_ok_and(|write| write.is_ok()) {
            return Ok(());
        }
        sleep(PROBE_PAUSE).await;
    }
    bail!("a member takes no writes after {} s", READY_MAX.as_secs())
}

async fn writes(address: SocketAddr) -> Result<()> {
    let pool = Pool::open(address, 1).await?;
    let request = shape::put(shape::short_key(0), Bytes::from_static(b"before"));
    work::put(&pool.channel(0), &request).await.map(drop)
}

async fn reads(address: SocketAddr) -> Result<()> {
    let pool = Pool::open(address, 1).await?;
    let read = shape::get(shape::short_key(0));
    pool.channel(0).unary::<RangeResponse>("/etcdserverpb.KV/Range", &read).await?;
    Ok(())
}

/// How many members there are, as one says.
async fn listed(address: SocketAddr) -> Result<usize> {
    let pool = Pool::open(address, 1).await?;
    let request = MemberListRequest { linearizable: false };
    let listed: MemberListResponse =
        pool.channel(0).unary("/etcdserverpb.Cluster/MemberList", &request).await?;
    Ok(listed.members.len())
}

async fn status(address: SocketAddr) -> Result<StatusResponse> {
    let pool = Pool::open(address, 1).await?;
    Ok(pool.channel(0).unary("/etcdserverpb.Maintenance/Status", &StatusRequest {}).await?)
}

fn peer(at: usize, address: SocketAddr) -> String {
    format!("m{at}=http://{address}")
}

fn flags(at: usize, (address, peer): (SocketAddr, SocketAddr)) -> Vec<String> {
    vec![
        format!("--name=m{at}"),
        format!("--listen-client-urls=http://{address}"),
        format!("--advertise-client-urls=http://{address}"),
        format!("--listen-peer-urls=http://{peer}"),
        format!("--initial-advertise-peer-urls=http://{peer}"),
        "--log-level=error".to_owned(),
    ]
}

async fn free_address() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("a free port")?;
    listener.local_addr().context("the port that was bound")
}
