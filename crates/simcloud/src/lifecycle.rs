//! The tasks of one process: the server and the kubelets, which end together.

use std::time::Duration;

use kubekit::lifecycle::{Error, Tasks};
use tokio_util::sync::CancellationToken;

use crate::kubelet::Kubelet;
use crate::server::{self, Server};

/// How long calls under way may take to end.
const GRACE: Duration = Duration::from_secs(5);

/// Why a process stopped without being asked.
pub type StopError = Error<server::Error>;

/// Everything that runs.
pub(crate) struct Parts {
    pub(crate) server: Server,
    pub(crate) kubelet: Option<Kubelet>,
}

/// Runs all of it until `shutdown`, or until a part ends that should not.
pub(crate) async fn run(parts: Parts, shutdown: &CancellationToken) -> Result<(), StopError> {
    let mut tasks = Tasks::new(shutdown);
    tasks.spawn("server", parts.server.run(tasks.shutdown()));
    if let Some(kubelet) = parts.kubelet {
        let shutdown = tasks.shutdown();
        tasks.spawn("kubelet", async {
            kubelet.run(shutdown).await;
            Ok(())
        });
    }
    tasks.join(GRACE).await
}
