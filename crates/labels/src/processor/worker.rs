//! Works off one node after the other.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::{Context, turn::Turn};

/// Until `shutdown`: then nothing new is taken, and what was begun is finished.
pub(super) async fn run(context: Arc<Context>, shutdown: CancellationToken) {
    loop {
        let hash = tokio::select! {
            biased;
            () = shutdown.cancelled() => return,
            hash = context.backlog.next() => hash,
        };
        let end = Turn::new(&context, hash.clone()).run().await;
        context.status.on_progress();
        context.backlog.release(&hash, end);
    }
}
