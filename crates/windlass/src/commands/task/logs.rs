//! `windlass task logs`: what a task wrote, each stream to its own.

use base64::{Engine, engine::general_purpose::STANDARD};
use tasks::wire::{self, logs_response::Content};

use super::connect;
use crate::{
    cli::{
        Output,
        tasks::{LogsArgs, StreamArg},
    },
    report::{self, Failure, Outcome},
};

pub(super) async fn run(arguments: LogsArgs) -> Outcome {
    let client = connect::open(&arguments.connect).await?;
    let id = client.find(&arguments.id).await.map_err(connect::failure)?;
    let streams = arguments.stream.map(|stream| wire::Stream::from(stream).into());
    let mut logs = client.logs(wire::LogsRequest {
        id: id.to_string(),
        attempt: arguments.attempt.unwrap_or_default(),
        streams: streams.into_iter().collect(),
        follow: arguments.follow,
        tail: arguments.tail,
        from_offset: arguments.from.unwrap_or_default(),
        proxied: false,
    });
    while let Some(chunk) = logs.next().await.map_err(connect::failure)? {
        let is_read = match arguments.output {
            Output::Table => pass_on(&chunk)?,
            Output::Json => report::bytes(format!("{}\n", json(&chunk)).as_bytes(), false)?,
        };
        if !is_read {
            break;
        }
    }
    Ok(())
}

/// Writes a chunk to the stream it came from. `false`: nobody reads there any more.
pub(in crate::commands) fn pass_on(chunk: &wire::LogsResponse) -> Result<bool, Failure> {
    match &chunk.content {
        Some(Content::Data(bytes)) => report::bytes(bytes, chunk.stream() == wire::Stream::Stderr),
        Some(Content::Gap(gap)) => {
            report::words(&format!("windlass: {} bytes of output are lost", gap.dropped_bytes));
            Ok(true)
        }
        Some(Content::End(_)) | None => Ok(true),
    }
}

/// Bytes need not be text, so they are not written as text.
fn json(chunk: &wire::LogsResponse) -> serde_json::Value {
    let mut line = serde_json::json!({
        "attempt": chunk.attempt,
        "offset": chunk.offset,
        "next_offset": chunk.next_offset,
        "time_ms": chunk.time_ms,
    });
    let stream = if chunk.stream() == wire::Stream::Stderr { "stderr" } else { "stdout" };
    let more = match &chunk.content {
        Some(Content::Data(bytes)) => {
            serde_json::json!({"stream": stream, "data": STANDARD.encode(bytes)})
        }
        Some(Content::Gap(gap)) => serde_json::json!({"gap_bytes": gap.dropped_bytes}),
        Some(Content::End(_)) | None => serde_json::json!({"end": true}),
    };
    if let (Some(line), serde_json::Value::Object(more)) = (line.as_object_mut(), more) {
        line.extend(more);
    }
    line
}

// === impl StreamArg ===

impl From<StreamArg> for wire::Stream {
    fn from(stream: StreamArg) -> Self {
        match stream {
            StreamArg::Stdout => Self::Stdout,
            StreamArg::Stderr => Self::Stderr,
        }
    }
}
