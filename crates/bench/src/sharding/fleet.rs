//! The processes under measurement: one sharder, some instances. Started, counted and ended; never
//! judged.

use std::{
    ffi::OsString,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    net::TcpListener,
    process::{Child, Command},
    time::{Instant, sleep},
};

use super::{
    Options,
    instance::{Pace, RECONCILES},
    report::Footprint,
    setting::Setting,
};
use crate::{http, process};

/// An instance may have to wait for a Lease that somebody else had.
const READY_MAX: Duration = Duration::from_mins(3);
const PROBE_PAUSE: Duration = Duration::from_millis(20);
/// As in the sharder's manifests.
const SHARDER_ENVIRONMENT: &[(&str, &str)] = &[("MIMALLOC_PURGE_DELAY", "0")];

/// All processes; dropping it kills them.
pub(super) struct Fleet {
    program: PathBuf,
    lease: Duration,
    sharder: Option<Process>,
    instances: Vec<(String, Process)>,
}

/// How an instance is started.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    pub(super) pace: Pace,
    pub(super) hold: Option<Duration>,
    pub(super) is_alone: bool,
}

struct Process {
    child: Child,
    address: SocketAddr,
}

// === impl Manner ===

impl Manner {
    pub(super) fn in_ring(pace: Pace) -> Self {
        Self { pace, hold: None, is_alone: false }
    }
}

// === impl Fleet ===

impl Fleet {
    pub(super) fn new(options: &Options) -> Self {
        let (program, lease) = (options.program.clone(), options.lease);
        Self { program, lease, sharder: None, instances: Vec::new() }
    }

    /// Of those that are started from now on.
    pub(super) fn set_lease(&mut self, lease: Duration) {
        self.lease = lease;
    }

    pub(super) async fn start_sharder(&mut self, setting: &Setting) -> Result<()> {
        let kubeconfig = setting.sharder_login().await?;
        let arguments = [
            "sharder".into(),
            "run".into(),
            "--log-level=warn".into(),
            argument("--kubeconfig=", &kubeconfig),
        ];
        let mut sharder = Process::start(&self.program, &arguments, SHARDER_ENVIRONMENT).await?;
        sharder.wait_ready().await.context("the sharder")?;
        self.sharder = Some(sharder);
        Ok(())
    }

    pub(super) async fn stop_sharder(&mut self) -> Result<()> {
        self.sharder.take().context("no sharder runs")?.stop().await.context("the sharder")
    }

    /// Starts an instance and waits until it has its place.
    pub(super) async fn join(&mut self, setting: &Setting, id: &str, manner: Manner) -> Result<()> {
        let mut instance = self.launch(setting, id, manner).await?;
        instance.wait_ready().await.with_context(|| format!("instance {id}"))?;
        self.instances.push((id.to_owned(), instance));
        Ok(())
    }

    async fn launch(&self, setting: &Setting, id: &str, manner: Manner) -> Result<Process> {
        let kubeconfig = setting.instance_login(id).await?;
        let mut arguments: Vec<OsString> = vec![
            "bench".into(),
            "shard-instance".into(),
            argument("--kubeconfig=", &kubeconfig),
            format!("--namespace={}", setting.name).into(),
            format!("--id={id}").into(),
            format!("--lease-seconds={}", self.lease.as_secs()).into(),
            format!("--pace={}", manner.pace.word()).into(),
        ];
        if !manner.is_alone {
            arguments.push(format!("--ring={}", setting.name).into());
        }
        arguments.extend(manner.hold.map(|hold| format!("--hold={}", hold.as_secs()).into()));
        Process::start(&self.program, &arguments, &[]).await
    }

    pub(super) fn ids(&self) -> Vec<String> {
        self.instances.iter().map(|(id, _)| id.clone()).collect()
    }

    /// SIGTERM, and waits for an orderly end.
    pub(super) async fn leave(&mut self, id: &str) -> Result<()> {
        self.take(id)?.stop().await.with_context(|| format!("instance {id}"))
    }

    /// kill -9.
    pub(super) async fn kill(&mut self, id: &str) -> Result<()> {
        self.take(id)?.child.kill().await.with_context(|| format!("kill {id}"))
    }

    fn take(&mut self, id: &str) -> Result<Process> {
        let at = self.instances.iter().position(|(own, _)| own == id);
        Ok(self.instances.remove(at.with_context(|| format!("{id} does not run"))?).1)
    }

    pub(super) async fn leave_all(&mut self) -> Result<()> {
        for id in self.ids() {
            self.leave(&id).await?;
        }
        Ok(())
    }

    /// What all instances have worked on so far.
    pub(super) async fn reconciles(&self) -> Result<f64> {
        let mut sum = 0.0;
        for (_, instance) in &self.instances {
            sum += instance.metric(RECONCILES).await?;
        }
        Ok(sum)
    }

    /// Processor time so far: of the sharder, and of all instances.
    pub(super) fn cpu(&self) -> Result<(Duration, Duration)> {
        let sharder = self.sharder.as_ref().map_or(Ok(Duration::ZERO), Process::cpu)?;
        let mut instances = Duration::ZERO;
        for (_, instance) in &self.instances {
            instances += instance.cpu()?;
        }
        Ok((sharder, instances))
    }

    /// Memory of the sharder, when there are so many objects.
    pub(super) fn footprint(&self, objects: usize) -> Result<Footprint> {
        let pid = self.sharder()?.pid()?;
        Ok(Footprint {
            objects,
            resident_bytes: process::resident_bytes(pid)?,
            own_bytes: process::own_bytes(pid)?,
            peak_bytes: process::peak_bytes(pid)?,
        })
    }

    pub(super) async fn sharder_metric(&self, name: &str) -> Result<f64> {
        self.sharder()?.metric(name).await
    }

    fn sharder(&self) -> Result<&Process> {
        self.sharder.as_ref().context("no sharder runs")
    }

    pub(super) async fn stop(mut self) -> Result<()> {
        self.leave_all().await?;
        self.stop_sharder().await
    }
}

// === impl Process ===

impl Process {
    async fn start(
        program: &PathBuf,
        arguments: &[OsString],
        environment: &[(&str, &str)],
    ) -> Result<Self> {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("no free port")?;
        let address = free.local_addr().context("no free port")?;
        drop(free);
        let child = Command::new(program)
            .args(arguments)
            .arg(format!("--listen={address}"))
            .envs(environment.iter().copied())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Self { child, address })
    }

    async fn wait_ready(&mut self) -> Result<()> {
        let deadline = Instant::now() + READY_MAX;
        loop {
            let ended = self.child.try_wait().context("cannot look at a process")?;
            ensure!(ended.is_none(), "ended before it was ready: {ended:?}");
            let answer = http::get(self.address, "/readyz?verbose").await;
            if answer.as_ref().is_ok_and(|answer| answer.is_success) {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "did not become ready: {answer:?}");
            sleep(PROBE_PAUSE).await;
        }
    }

    /// The sum over the labels of a metric; nothing was counted if there is no such line.
    async fn metric(&self, name: &str) -> Result<f64> {
        let page = http::get(self.address, "/metrics").await?.body;
        let samples = page.lines().filter(|line| {
            line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']))
        });
        let values = samples.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        Ok(values.sum())
    }

    fn pid(&self) -> Result<u32> {
        self.child.id().context("a process has ended")
    }

    fn cpu(&self) -> Result<Duration> {
        Ok(process::cpu_time(self.pid()?)?)
    }

    async fn stop(mut self) -> Result<()> {
        let pid = Pid::from_raw(i32::try_from(self.pid()?)?).context("a process has a number")?;
        kill_process(pid, Signal::TERM).context("cannot ask a process to end")?;
        let status = self.child.wait().await.context("cannot wait for a process")?;
        ensure!(status.success(), "ended with {status}");
        Ok(())
    }
}

// === impl Pace ===

impl Pace {
    /// As the command line has it.
    fn word(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::OnChange => "on-change",
            Self::Idle => "idle",
        }
    }
}

fn argument(flag: &str, path: &PathBuf) -> OsString {
    let mut argument = OsString::from(flag);
    argument.push(path);
    argument
}
