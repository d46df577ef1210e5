//! `windlass task`: which of its commands was asked for, and those that only ask and print.

pub(super) mod connect;
pub(crate) mod describe;
pub(super) mod logs;
mod wait;

use std::collections::BTreeMap;

use jiff::SignedDuration;
use serde::Serialize;
use tasks::{client::Client, wire};

use self::describe::Described;
use crate::{
    cli::{
        Output,
        tasks::{
            CancelArgs, ExplainArgs, FsckArgs, GcArgs, ListArgs, StateArg, StatusArgs, TaskCommand,
        },
    },
    lifecycle,
    report::{self, Exit, Failure, Outcome},
};

pub(crate) async fn run(command: TaskCommand) -> Outcome {
    match command {
        TaskCommand::List(arguments) => list(arguments).await,
        TaskCommand::Status(arguments) => status(arguments).await,
        TaskCommand::Logs(arguments) => logs::run(arguments).await,
        TaskCommand::Wait(arguments) => wait::run(arguments).await,
        TaskCommand::Cancel(arguments) => cancel(arguments).await,
        TaskCommand::Explain(arguments) => explain(arguments).await,
        TaskCommand::Fsck(arguments) => fsck(arguments).await,
        TaskCommand::Gc(arguments) => gc(arguments).await,
    }
}

async fn list(arguments: ListArgs) -> Outcome {
    let client = connect::open(&arguments.connect).await?;
    let node_id = match &arguments.on {
        Some(node) => host_of(&client, node).await?,
        None => String::new(),
    };
    let filter = wire::Filter {
        states: arguments.states.iter().map(|state| wire::State::from(*state).into()).collect(),
        labels: arguments.labels.into_iter().collect::<BTreeMap<_, _>>(),
        node_id,
        ..Default::default()
    };
    let listing = client.list(filter, arguments.limit).await.map_err(connect::failure)?;
    let mut tasks = described(listing.tasks)?;
    tasks.sort_by_key(|task| task.create_revision);
    print(arguments.output, &tasks, |tasks| describe::table(tasks, lifecycle::timestamp()))?;
    // They come in the order of their ids, so that those left out may be the newest.
    if listing.has_more {
        let listed = tasks.len();
        report::words(&format!("there are more; --limit lists more than {listed}"));
    }
    Ok(())
}

async fn status(arguments: StatusArgs) -> Outcome {
    let client = connect::open(&arguments.connect).await?;
    let id = client.find(&arguments.id).await.map_err(connect::failure)?;
    let task = Described::of(client.status(id).await.map_err(connect::failure)?)?;
    print(arguments.output, &task, describe::text)
}

/// All that can be; what is refused of one is said, and is nothing to the others.
async fn cancel(arguments: CancelArgs) -> Outcome {
    let client = connect::open(&arguments.connect).await?;
    let (mut canceled, mut refused) = (Vec::new(), None);
    for id in &arguments.ids {
        match cancel_one(&client, id).await {
            Ok(view) => canceled.push(view),
            Err(failure) if failure.exit() == Exit::Unreachable => return Err(failure),
            Err(failure) => {
                failure.report();
                refused = refused.or(Some(failure.exit()));
            }
        }
    }
    let tasks = described(canceled)?;
    print(arguments.output, &tasks, |tasks| describe::table(tasks, lifecycle::timestamp()))?;
    refused.map_or(Ok(()), |exit| Err(Failure::silent(exit)))
}

async fn cancel_one(client: &Client, id: &str) -> Result<wire::TaskView, Failure> {
    let id = client.find(id).await.map_err(connect::failure)?;
    client.cancel(id).await.map_err(connect::failure)
}

async fn explain(arguments: ExplainArgs) -> Outcome {
    let client = connect::open(&arguments.connect).await?;
    let id = client.find(&arguments.id).await.map_err(connect::failure)?;
    let explanation = client.explain(id).await.map_err(connect::failure)?;
    let explained = describe::Explained::of(&explanation);
    let view = client.status(id).await.map_err(connect::failure)?;
    let why = describe::Why { task: describe::Described::of(view)?.state, explained };
    print(arguments.output, &why, describe::explanation_text)
}

async fn fsck(arguments: FsckArgs) -> Outcome {
    let client = connect::open(&arguments.connect).await?;
    let checked = client.fsck(arguments.repair).await.map_err(connect::failure)?;
    let findings: Vec<describe::Finding> =
        checked.findings.into_iter().map(describe::Finding::of).collect();
    print(arguments.output, &findings, |findings| describe::findings_text(findings))?;
    let left = findings.iter().filter(|finding| !finding.repaired).count();
    if left == 0 {
        return Ok(());
    }
    let error = anyhow::anyhow!("{left} things do not hold at revision {}", checked.revision);
    Err(Failure::new(Exit::No, error)
        .with_hint("`windlass task fsck --repair` mends status keys, and nothing else"))
}

async fn gc(arguments: GcArgs) -> Outcome {
    let client = connect::open(&arguments.connect).await?;
    let older = SignedDuration::try_from(arguments.older_than).unwrap_or(SignedDuration::MAX);
    // Nothing ended before there were computers.
    let before = lifecycle::timestamp().checked_sub(older).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let deleted = client.gc(before.as_millisecond()).await.map_err(connect::failure)?;
    let removed = describe::Removed { deleted };
    print(arguments.output, &removed, |removed| format!("removed {} tasks", removed.deleted))
}

/// The host of the live node that is meant by a name or an id: what ran there before its last start ran on
/// it too.
async fn host_of(client: &Client, node: &str) -> Result<String, Failure> {
    let mut nodes = client.nodes().await.map_err(connect::failure)?;
    nodes.retain(|each| each.name == node || each.node_id == node);
    let error = match (nodes.len(), nodes.pop()) {
        (1, Some(only)) => return Ok(only.host_id),
        (0, _) => anyhow::anyhow!("there is no node `{node}`"),
        (count, _) => anyhow::anyhow!("{count} nodes are called `{node}`"),
    };
    Err(Failure::new(Exit::No, error).with_hint("`windlass nodes` lists them and their ids"))
}

fn described(views: Vec<wire::TaskView>) -> Result<Vec<Described>, Failure> {
    views.into_iter().map(Described::of).collect()
}

pub(super) fn print<T: Serialize>(
    output: Output,
    answer: &T,
    table: impl FnOnce(&T) -> String,
) -> Outcome {
    match output {
        Output::Table => report::data(&table(answer)),
        Output::Json => report::data(&report::json(answer)?),
    }
}

// === impl StateArg ===

impl From<StateArg> for wire::State {
    fn from(state: StateArg) -> Self {
        match state {
            StateArg::Queued => Self::Queued,
            StateArg::Running => Self::Running,
            StateArg::Complete => Self::Complete,
            StateArg::Canceled => Self::Canceled,
            StateArg::Failed => Self::Failed,
        }
    }
}
