//! Whether this process may do what it has to: asked at the start, again whenever something was
//! refused, and named until it is granted. Never works around a missing right.

use std::{error, sync::Arc, time::Duration};

use kube::Client;
use kubekit::{
    access::{Need, describe, missing},
    health::Check,
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{
    manifests::{Account, access::needs},
    options::Options,
};

/// How long an answer that all is well is believed, unless something is refused.
const BELIEVED_FOR: Duration = Duration::from_mins(10);

/// How soon is asked again while something is missing.
const ASKED_EVERY: Duration = Duration::from_secs(10);

/// What a dry run does.
const READING: [&str; 3] = ["get", "list", "watch"];

/// Asks, and tells the probes.
pub(crate) struct Access {
    client: Client,
    needs: Vec<Need>,
    check: Check,
    in_doubt: Arc<Notify>,
}

// === impl Access ===

impl Access {
    pub(crate) fn new(
        client: Client,
        options: &Options,
        check: Check,
        in_doubt: Arc<Notify>,
    ) -> Self {
        let mut all = Vec::new();
        if options.role.watches() {
            all.extend(needs(Account::Watcher, &options.namespaces));
        }
        if options.role.processes() {
            let rights = needs(Account::Processor, &options.namespaces);
            let is_needed = |need: &Need| !options.is_dry_run || READING.contains(&need.verb);
            all.extend(rights.into_iter().filter(is_needed));
        }
        Self { client, needs: all, check, in_doubt }
    }

    pub(crate) async fn run(self, shutdown: CancellationToken) {
        let ask = async {
            loop {
                let again_in = self.ask().await;
                tokio::select! {
                    () = tokio::time::sleep(again_in) => {}
                    () = self.in_doubt.notified(), if again_in == BELIEVED_FOR => {}
                }
            }
        };
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = ask => {}
        }
    }

    /// How long to wait before the next time.
    async fn ask(&self) -> Duration {
        match missing(&self.client, &self.needs).await {
            Ok(missing) if missing.is_empty() => {
                self.check.pass();
                BELIEVED_FOR
            }
            Ok(missing) => {
                let missing = describe(&missing);
                tracing::error!(missing, "rights are missing");
                self.check.fail(missing);
                ASKED_EVERY
            }
            Err(error) => {
                tracing::warn!(error = &error as &dyn error::Error, "cannot ask about rights");
                self.check.fail(error.to_string());
                ASKED_EVERY
            }
        }
    }
}
