//! Containers that run `true`, by the library that nodes start them with and by other programs on the
//! same root: one after the other for the time of one, many at once for how many a second.

use std::{future::Future, path::Path, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use sandbox::{
    AttemptId, Boottime, Exit, Host, Kind, Limits, Medium, Network, Options as HostOptions, Order,
    Outcome, Root, Spec, User,
    host::{Engine, Event},
};
use tokio::{task::JoinSet, time::Instant};
use uuid::Uuid;

use super::{
    Options,
    report::{Containers, Spread},
    rivals::{self, Rival},
};

/// At once, for each processor: one waits for the kernel while the other works.
const AT_ONCE_PER_CORE: usize = 2;
const ROOT: &str = "bench";
const NOBODY: User = User { uid: 65534, gid: 65534 };

/// What one container took.
#[derive(Clone, Copy, Debug)]
struct Took {
    /// Until the command ran, where that can be told.
    start: Option<Duration>,
    whole: Duration,
}

/// Of ours and of each rival; and why some of them were not measured.
pub(super) async fn measure(
    options: &Options,
    progress: &mut (dyn FnMut(&str) + Send),
) -> Result<(Vec<Containers>, Vec<String>)> {
    let root = options.scratch.join("root");
    rivals::make_root(&root)?;
    let mut measured = vec![ours(options, &root).await.context("windlass")?];
    let mut not_measured = rivals::absent(&options.rivals);
    progress(&measured[0].to_string());
    for program in &options.rivals {
        let rival = Arc::new(Rival::new(program, &options.scratch.join("bundles"), &root)?);
        match theirs(&rival, options.containers).await {
            Ok(theirs) => {
                progress(&theirs.to_string());
                measured.push(theirs);
            }
            // Not every program runs on every layout of cgroups.
            Err(error) => not_measured.push(format!("{}: {error:#}", rival.name())),
        }
    }
    Ok((measured, not_measured))
}

async fn theirs(rival: &Arc<Rival>, count: usize) -> Result<Containers> {
    both(rival.name(), count, |number| {
        let rival = rival.clone();
        async move {
            let began = Instant::now();
            rival.run(number).await?;
            Ok(Took { start: None, whole: began.elapsed() })
        }
    })
    .await
}

async fn ours(options: &Options, root: &Path) -> Result<Containers> {
    let data = options.scratch.join("containers");
    let mut host = HostOptions::new(data, Uuid::new_v4(), Kind::Native);
    host.engine = Engine::Shim { kind: Kind::Native, program: options.program.clone() };
    host.roots.insert(ROOT.to_owned(), root.to_owned());
    let (host, _) = Host::open(host).await?;
    host.deadline().set(Boottime::NEVER);
    let runner = host.clone();
    let measured = both("windlass", options.containers, move |number| {
        let host = runner.clone();
        async move { run(&host, number).await }
    })
    .await;
    host.close().await;
    measured
}

async fn run(host: &Host, number: usize) -> Result<Took> {
    let id = AttemptId { task: Uuid::new_v4(), number: u32::try_from(number)? + 1 };
    let began = Instant::now();
    let mut attempt = host.start(Order { id, spec: spec(), note: Vec::new() });
    let mut start = None;
    while let Some(event) = attempt.next().await {
        match event {
            Event::Created => {}
            Event::Started => start = Some(began.elapsed()),
            Event::Ended(ended) => {
                let whole = began.elapsed();
                ensure!(is_success(&ended.outcome), "it ended otherwise: {:?}", ended.outcome);
                host.forget(id).await?;
                return Ok(Took { start, whole });
            }
        }
    }
    bail!("the host was closed")
}

fn is_success(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Exited { exit: Exit::Code(0), .. })
}

fn spec() -> Spec {
    let limits = Limits {
        cpu_weight_millis: 100,
        cpu_quota_millis: None,
        memory_bytes: 64 << 20,
        pids: 64,
        scratch_bytes: 1 << 20,
        scratch_medium: Medium::Memory,
    };
    Spec {
        argv: vec![rivals::COMMAND.to_owned()],
        env: [].into(),
        workdir: "/".into(),
        user: NOBODY,
        stdin: Vec::new(),
        root: Root::Named { name: ROOT.to_owned() },
        network: Network::None,
        limits,
        timeout: None,
        grace: Duration::ZERO,
    }
}

/// One after the other, then many at once.
async fn both<F>(name: &str, count: usize, run: impl Fn(usize) -> F) -> Result<Containers>
where
    F: Future<Output = Result<Took>> + Send + 'static,
{
    let mut took = Vec::with_capacity(count);
    for number in 0..count {
        took.push(run(number).await?);
    }
    let cores = std::thread::available_parallelism()?.get();
    let mut crowd = JoinSet::new();
    let began = Instant::now();
    for number in 0..count {
        if number >= AT_ONCE_PER_CORE * cores {
            joined(crowd.join_next().await)?;
        }
        crowd.spawn(run(count + number));
    }
    while !crowd.is_empty() {
        joined(crowd.join_next().await)?;
    }
    let busy = began.elapsed();
    let starts: Vec<Duration> = took.iter().filter_map(|each| each.start).collect();
    let wholes: Vec<Duration> = took.iter().map(|each| each.whole).collect();
    Ok(Containers::new(name, count, busy, Spread::of(&starts), Spread::of(&wholes)))
}

fn joined(ended: Option<Result<Result<Took>, tokio::task::JoinError>>) -> Result<()> {
    ended.context("somebody runs")?.context("it panicked")??;
    Ok(())
}
