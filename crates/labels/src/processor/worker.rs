//! Works off one node after the other.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use super::{Context, turn::Turn};

/// Who has nothing to do says so from time to time, because silence would mean that it is stuck.
const IDLE_MAX: Duration = Duration::from_mins(1);

/// Until `shutdown`: then nothing new is taken, and what was begun is finished.
pub(super) async fn run(context: Arc<Context>, shutdown: CancellationToken) {
    loop {
        let next = tokio::select! {
            biased;
            () = shutdown.cancelled() => return,
            next = tokio::time::timeout(IDLE_MAX, context.backlog.next()) => next,
        };
        if let Ok(hash) = next {
            let end = Turn::new(&context, hash.clone()).run().await;
            context.backlog.release(&hash, end);
        }
        context.status.on_progress();
    }
}
