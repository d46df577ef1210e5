//! `windlass task wait`: until tasks have ended, however long that is.

use std::time::Duration;

use tasks::{client::Client, core::id::TaskId, wire};
use tokio::time::Instant;

use super::{connect, describe, described, print};
use crate::{
    cli::tasks::WaitArgs,
    lifecycle,
    report::{Exit, Failure, Outcome},
};

/// A node answers at least this often, so that one that is gone is noticed.
const ASK_EVERY: Duration = Duration::from_mins(1);
/// What a node is asked for at once.
const IDS_MAX: usize = 100;

pub(super) async fn run(arguments: WaitArgs) -> Outcome {
    let client = connect::open(&arguments.connect).await?;
    let mut ids = Vec::with_capacity(arguments.ids.len());
    for id in &arguments.ids {
        ids.push(client.find(id).await.map_err(connect::failure)?);
    }
    let until = arguments.timeout.map(|timeout| Instant::now() + timeout);
    let mut views = Vec::with_capacity(ids.len());
    for some in ids.chunks(IDS_MAX) {
        views.extend(until_ended(&client, some, until).await?);
    }
    let tasks = described(views)?;
    print(arguments.output, &tasks, |tasks| describe::table(tasks, lifecycle::timestamp()))?;
    let going_on = tasks.iter().filter(|task| !task.state.is_final()).count();
    let unwell = tasks.iter().filter(|task| !task.state.is_success()).count();
    let error = match (going_on, unwell) {
        (0, 0) => return Ok(()),
        (0, unwell) => anyhow::anyhow!("{unwell} of {} tasks did not end well", tasks.len()),
        (going_on, _) => anyhow::anyhow!("{going_on} of {} tasks have not ended", tasks.len()),
    };
    Err(Failure::new(Exit::No, error).with_hint("`windlass task status ID` says more"))
}

/// The tasks once all have ended, or as they are when the time is up.
async fn until_ended(
    client: &Client,
    ids: &[TaskId],
    until: Option<Instant>,
) -> Result<Vec<wire::TaskView>, Failure> {
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let timeout = left.map_or(ASK_EVERY, |left| left.min(ASK_EVERY));
        let answer = client.wait(ids, timeout).await.map_err(connect::failure)?;
        if answer.done || left.is_some_and(|left| left <= timeout) {
            return Ok(answer.tasks);
        }
    }
}
