//! Whether this process may do what it has to, and has the namespaces to do it in: asked at the
//! start, again whenever something was refused, and named until it is so. Never works around a
//! missing right, and never creates a namespace.

use std::{error, sync::Arc, time::Duration};

use kube::Client;
use kubekit::{
    access::{Need, describe, missing},
    health::Check,
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{
    kubernetes::{Error, Objects},
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
    objects: Objects,
    options: Options,
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
            all.extend(needs(Account::Processor, &options.namespaces));
        }
        all.retain(|need: &Need| !options.is_dry_run || READING.contains(&need.verb));
        let objects = Objects::new(&client, &options.namespaces);
        Self { client, objects, options: options.clone(), needs: all, check, in_doubt }
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
        match self.find_lack().await {
            None => {
                self.check.pass();
                BELIEVED_FOR
            }
            Some(lack) => {
                tracing::error!(lack, "the service cannot work");
                self.check.fail(lack);
                ASKED_EVERY
            }
        }
    }

    /// What is missing, in words.
    async fn find_lack(&self) -> Option<String> {
        match missing(&self.client, &self.needs).await {
            Ok(missing) if missing.is_empty() => self.probe().await.err().map(in_words),
            Ok(missing) => Some(describe(&missing)),
            Err(error) => Some(in_words(error)),
        }
    }

    /// Meets every namespace that something is created in.
    async fn probe(&self) -> Result<(), Error> {
        let Options { role, is_dry_run, .. } = self.options;
        if is_dry_run {
            return Ok(());
        }
        if role.watches() {
            self.objects.transactions.probe().await?;
            self.objects.checkpoints.probe().await?;
        }
        if role.processes() {
            self.objects.locks.probe().await?;
            self.objects.records.probe().await?;
        }
        Ok(())
    }
}

/// With all its causes, for a line that stands alone.
fn in_words(error: impl error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |words, cause| format!("{words}: {cause}"))
}
