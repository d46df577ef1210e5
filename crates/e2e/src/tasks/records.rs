//! Every version of every task, read from the store's own history: nothing is compacted during a test.

use anyhow::{Context, Result};
use etcd_api::mvccpb::{Event, EventType};
use prost::Message;
use tasks::core::keys::KeyRange;
use tasks::wire::{self, status::Status};

use super::check::{State, Version};
use crate::client::Client;
use crate::load::read_events;

/// All versions up to now, in the order of revisions.
pub async fn read(client: &Client) -> Result<Vec<Version>> {
    let events = read_events(client).await?;
    let of_tasks = events.iter().filter(|event| KeyRange::TASKS.contains(event.kv().key()));
    of_tasks.map(version).collect()
}

fn version(event: &Event) -> Result<Version> {
    let pair = event.kv();
    let key = String::from_utf8_lossy(pair.key()).into_owned();
    let task = key.trim_start_matches("/task/").to_owned();
    let revision = pair.mod_revision();
    if event.kind() == EventType::Delete {
        return Ok(Version { task, revision, state: State::Deleted });
    }
    let record = wire::Task::decode(pair.value()).with_context(|| format!("read {key}"))?;
    Ok(Version { task, revision, state: state(&record)? })
}

fn state(record: &wire::Task) -> Result<State> {
    let status = record.status.as_ref().and_then(|status| status.status.as_ref());
    let last_attempt = record.attempts.last().map_or(0, |attempt| attempt.number);
    Ok(match status.with_context(|| format!("{} has no status", record.id))? {
        Status::Queued(_) => State::Queued,
        Status::Running(running) => State::Running { attempt: running.attempt },
        Status::Complete(complete) => {
            State::Complete { attempt: last_attempt, exit_code: complete.exit_code }
        }
        Status::Canceled(canceled) => State::GivenUp(format!("canceled by {}", canceled.by)),
        Status::Failed(failed) => State::GivenUp(format!("{:?}", failed.reason())),
    })
}
