//! Several watches on one stream, from the past and from now on, with progress and cancellation.

use anyhow::{Context, Result};
use etcd_client::{Client, WatchFilterType, WatchOptions, WatchResponse, WatchStream};

use crate::transcript::{Transcript, event, revision};

pub(crate) async fn run(client: &mut Client, transcript: &mut Transcript) -> Result<()> {
    let all = WatchOptions::new().with_all_keys().with_prev_key().with_watch_id(7);
    let mut stream = client.watch("", Some(all)).await?;
    listen(&mut stream, transcript, "created").await?;
    client.put("w/1", "1", None).await?;
    listen(&mut stream, transcript, "put").await?;
    client.put("w/1", "2", None).await?;
    listen(&mut stream, transcript, "put over").await?;
    client.delete("w/1", None).await?;
    listen(&mut stream, transcript, "deleted").await?;
    stream.request_progress().await?;
    listen(&mut stream, transcript, "progress").await?;
    stream.cancel(7).await?;
    listen(&mut stream, transcript, "cancelled").await?;

    let deletes = WatchOptions::new()
        .with_prefix()
        .with_filters([WatchFilterType::NoPut])
        .with_start_revision(5)
        .with_watch_id(8);
    stream.watch("w/", Some(deletes)).await?;
    listen(&mut stream, transcript, "created").await?;
    listen(&mut stream, transcript, "from the past").await?;
    let compacted = WatchOptions::new().with_start_revision(1).with_watch_id(9);
    stream.watch("a", Some(compacted)).await?;
    listen(&mut stream, transcript, "created").await?;
    listen(&mut stream, transcript, "compacted").await
}

async fn listen(stream: &mut WatchStream, transcript: &mut Transcript, what: &str) -> Result<()> {
    let answer = stream.message().await?.context("the stream ended")?;
    transcript.say(&format!("watch, {what}"), told(&answer));
    Ok(())
}

fn told(answer: &WatchResponse) -> String {
    let events: Vec<String> = answer.events().iter().map(event).collect();
    format!(
        "{} at {}, created: {}, canceled: {} ({}), compacted: {}, {}",
        answer.watch_id(),
        revision(answer.header()),
        answer.created(),
        answer.canceled(),
        answer.cancel_reason(),
        answer.compact_revision(),
        events.join("; ")
    )
}
