//! How soon the tasks of a lost node run again: when it stays away, and when it comes back at once.

use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use tasks::{
    client::Client,
    wire::{Filter, Resources, State, TaskSpec, TaskView, status::Status},
};
use tokio::time::{Instant, sleep};

use super::{
    Options,
    crowd::status,
    fleet::{Fleet, Plan},
    report::Loss,
};

/// Far beyond any lease.
const WAIT_MAX: Duration = Duration::from_mins(2);
const LOOK_EVERY: Duration = Duration::from_millis(20);
const CPU_MILLIS: u64 = 5;
const MEMORY_BYTES: u64 = 16 << 20;

pub(super) async fn measure(options: &Options) -> Result<Vec<Loss>> {
    let away = lose(options, "killed", false).await.context("a node that stays away")?;
    let back = lose(options, "restarted", true).await.context("a node that comes back")?;
    Ok(vec![away, back])
}

async fn lose(options: &Options, name: &'static str, comes_back: bool) -> Result<Loss> {
    let (program, folder) = (options.program.as_path(), options.scratch.join(name));
    let (nodes, ttl) = (options.nodes, options.ttl);
    let mut fleet = Fleet::start(&Plan { program, folder, nodes, runtime: "native", ttl }).await?;
    let client = fleet.client().await?;
    let count = options.lost_tasks * options.nodes;
    for result in client.submit_batch(vec![sleeper(); count]).await? {
        result.map_err(|refusal| anyhow!("refused: {refusal:?}"))?;
    }
    let tasks = running(&client, count, |_| true).await?;
    let lost = tasks.iter().filter(|view| last(view).1 == fleet.last()).count();
    ensure!(lost > 0, "the last node runs nothing");
    let began = Instant::now();
    fleet.kill_last().await?;
    if comes_back {
        fleet.restart_last().await?;
    }
    running(&client, lost, |view| last(view).0 > 1).await?;
    let again_in = began.elapsed();
    cancel(&client, count).await?;
    if !comes_back {
        fleet.restart_last().await?;
    }
    fleet.stop().await?;
    Ok(Loss { comes_back, tasks: lost, again_in_s: again_in.as_secs_f64() })
}

fn sleeper() -> TaskSpec {
    let resources = Resources {
        cpu_millis: Some(CPU_MILLIS),
        memory_bytes: Some(MEMORY_BYTES),
        scratch_bytes: Some(1 << 20),
        ..Default::default()
    };
    TaskSpec {
        command: "sleep".to_owned(),
        args: vec!["3600".to_owned()],
        resources: Some(resources),
        grace_ms: Some(0),
        restart_on_cluster_error: true,
        ..Default::default()
    }
}

/// The tasks that run, once at least so many of those that are meant do.
async fn running(
    client: &Client,
    count: usize,
    is_meant: impl Fn(&TaskView) -> bool,
) -> Result<Vec<TaskView>> {
    let until = Instant::now() + WAIT_MAX;
    loop {
        let states = vec![State::Running.into()];
        let all = client.list(Filter { states, ..Default::default() }, usize::MAX).await?.tasks;
        let is_running = |view: &&TaskView| matches!(status(view), Some(Status::Running(_)));
        let found = all.iter().filter(is_running).filter(|view| is_meant(view)).count();
        if found >= count {
            return Ok(all);
        }
        ensure!(Instant::now() < until, "{found} of {count} tasks run after {WAIT_MAX:?}");
        sleep(LOOK_EVERY).await;
    }
}

/// Number and node of the last attempt.
fn last(view: &TaskView) -> (u32, &str) {
    let last = view.task.as_ref().and_then(|task| task.attempts.last());
    last.map_or((0, ""), |attempt| (attempt.number, attempt.node_name.as_str()))
}

async fn cancel(client: &Client, count: usize) -> Result<()> {
    for view in client.list(Filter::default(), count).await?.tasks {
        let id = view.task.context("a view has its task")?.id;
        client.cancel(id.parse().context("the node gives ids")?).await?;
    }
    Ok(())
}
