//! Many short tasks at once: how many a second, how evenly, and what that costs.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context, Result, anyhow, ensure};
use tasks::{
    client::Client,
    core::id::TaskId,
    wire::{Resources, TaskSpec, TaskView, status::Status},
};
use tokio::time::Instant;

use super::{
    Options,
    fleet::{Fleet, Plan},
    report::Crowd,
};

/// As many as one request may carry.
const BATCH_TASKS: usize = 1000;
/// As many as one request may wait for.
const WAIT_TASKS: usize = 100;
/// Far beyond what a slow machine takes for one part.
const WAIT_MAX: Duration = Duration::from_mins(10);
/// One in so many is canceled as soon as it was submitted.
const CANCELED_ONE_IN: usize = 100;
/// The tasks come in so many equal parts; what nodes hold is looked at after each.
const PARTS: usize = 4;
/// Little enough that processors, not their reservation, are the bound.
const CPU_MILLIS: u64 = 20;
const MEMORY_BYTES: u64 = 16 << 20;

/// Containers on all nodes.
pub(super) async fn on_nodes(options: &Options) -> Result<Crowd> {
    let plan = plan(options, "crowd", options.nodes, "native");
    measure(&plan, options.tasks, Some(CANCELED_ONE_IN)).await
}

/// Plain processes on one node.
pub(super) async fn of_processes(options: &Options) -> Result<Crowd> {
    measure(&plan(options, "processes", 1, "process"), options.process_tasks, None).await
}

fn plan<'a>(options: &'a Options, name: &str, nodes: usize, runtime: &'static str) -> Plan<'a> {
    let folder = options.scratch.join(name);
    Plan { program: &options.program, folder, nodes, runtime, ttl: options.ttl }
}

async fn measure(plan: &Plan<'_>, tasks: usize, canceled: Option<usize>) -> Result<Crowd> {
    let fleet = Fleet::start(plan).await?;
    let client = fleet.client().await?;
    let (mut holdings, mut busy) = (Vec::new(), Duration::ZERO);
    for _ in 0..PARTS {
        let began = Instant::now();
        let ids = submit(&client, tasks / PARTS, canceled).await?;
        wait(&client, &ids).await?;
        busy += began.elapsed();
        holdings.push(fleet.holding()?);
    }
    let claims = fleet.claims().await?;
    let all = client.list(Default::default(), tasks).await?.tasks;
    let found = client.fsck(false).await?.findings;
    ensure!(found.is_empty(), "fsck: {found:?}");
    let by_node = completed_by_node(&fleet, &all);
    let crowd = Crowd::new(plan.runtime, &by_node, busy, claims, holdings, counts(&all));
    fleet.stop().await?;
    Ok(crowd)
}

/// Submits them and cancels one in so many.
async fn submit(client: &Client, count: usize, canceled: Option<usize>) -> Result<Vec<TaskId>> {
    let mut ids = Vec::with_capacity(count);
    while ids.len() < count {
        let size = (count - ids.len()).min(BATCH_TASKS);
        for result in client.submit_batch(vec![spec(); size]).await? {
            let id = result.map_err(|refusal| anyhow!("refused: {refusal:?}"))?.id;
            ids.push(id.parse::<TaskId>().context("the node gives ids")?);
        }
    }
    if let Some(one_in) = canceled {
        for id in ids.iter().step_by(one_in) {
            // One that has ended meanwhile cannot be canceled any more, and need not.
            if let Err(error) = client.cancel(*id).await {
                let is_over = is_final(&client.status(*id).await?);
                ensure!(is_over, "cannot cancel: {error}");
            }
        }
    }
    Ok(ids)
}

fn spec() -> TaskSpec {
    let resources = Resources {
        cpu_millis: Some(CPU_MILLIS),
        memory_bytes: Some(MEMORY_BYTES),
        scratch_bytes: Some(1 << 20),
        ..Default::default()
    };
    TaskSpec { command: "true".to_owned(), resources: Some(resources), ..Default::default() }
}

async fn wait(client: &Client, ids: &[TaskId]) -> Result<()> {
    for group in ids.chunks(WAIT_TASKS) {
        let answer = client.wait(group, WAIT_MAX).await?;
        ensure!(answer.done, "tasks do not end within {WAIT_MAX:?}");
    }
    Ok(())
}

fn completed_by_node(fleet: &Fleet, tasks: &[TaskView]) -> Vec<usize> {
    let mut by_name: BTreeMap<&str, usize> = fleet.names().map(|name| (name, 0)).collect();
    for task in tasks.iter().filter_map(|view| view.task.as_ref()) {
        let last = task.attempts.last().map(|attempt| attempt.node_name.as_str());
        if let Some(count) = last.and_then(|name| by_name.get_mut(name)) {
            *count += 1;
        }
    }
    by_name.into_values().collect()
}

/// All that have ended, and those of them that were canceled.
fn counts(tasks: &[TaskView]) -> [usize; 2] {
    let is_canceled = |view: &&TaskView| matches!(status(view), Some(Status::Canceled(_)));
    [tasks.iter().filter(|view| is_final(view)).count(), tasks.iter().filter(is_canceled).count()]
}

pub(super) fn status(view: &TaskView) -> Option<&Status> {
    view.task.as_ref()?.status.as_ref()?.status.as_ref()
}

fn is_final(view: &TaskView) -> bool {
    !matches!(status(view), None | Some(Status::Queued(_) | Status::Running(_)))
}
