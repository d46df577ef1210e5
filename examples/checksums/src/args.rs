//! What can be said on the command line.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};
use sharding::instance::{JoinOptions, Pod, Stop};

/// Keeps a ConfigMap `<secret>-checksum` with the SHA-256 of every value of each Secret of a ring.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// The ring to join
    #[arg(long, default_value = "checksums")]
    ring: String,

    /// Who this instance is: the same after a restart, and no other's. The host's name unless given
    #[arg(long, env = "INSTANCE_ID")]
    id: Option<String>,

    /// Where the instance's Lease is kept. The credentials' namespace unless given
    #[arg(long, env = "POD_NAMESPACE")]
    namespace: Option<String>,

    /// How the API server is reached. The pod's service account unless given
    #[arg(long)]
    kubeconfig: Option<PathBuf>,

    /// Secrets worked on at once
    #[arg(long, default_value_t = 5)]
    pub(crate) workers: u16,

    /// How long the Lease lasts
    #[arg(long, default_value_t = 15, value_name = "SECONDS")]
    lease_seconds: u64,

    /// How much this instance takes compared with others, 0 to 1000
    #[arg(long)]
    weight: Option<u32>,

    /// At the end, hold the place for an instance of the same id that will be there within this time
    #[arg(long, value_name = "SECONDS")]
    hold: Option<u64>,

    /// The StatefulSet this instance is of: it owns the Lease, and scaled down it lets a held place go
    #[arg(long)]
    stateful_set: Option<String>,

    /// The pod this runs in
    #[arg(long, env = "POD_NAME", requires = "pod_uid")]
    pod_name: Option<String>,

    /// Its uid
    #[arg(long, env = "POD_UID", requires = "pod_name")]
    pod_uid: Option<String>,

    /// The container in the pod
    #[arg(long, default_value = "checksums")]
    container: String,

    /// Wait this long in every reconcile, as a controller does that has more to do
    #[arg(long, default_value_t = 0, value_name = "MILLISECONDS")]
    delay_ms: u64,

    /// Write a line of JSON to this file when a reconcile starts, goes on after a wait, and ends
    #[arg(long, value_name = "FILE")]
    pub(crate) history: Option<PathBuf>,
}

// === impl Args ===

impl Args {
    pub(crate) async fn config(&self) -> Result<Config> {
        let Some(path) = &self.kubeconfig else {
            return Config::incluster().context("not in a pod; give --kubeconfig");
        };
        let read = Kubeconfig::read_from(path);
        let read = read.with_context(|| format!("cannot read {}", path.display()))?;
        let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
        config.with_context(|| format!("{} names no cluster", path.display()))
    }

    pub(crate) fn join_options(&self) -> JoinOptions {
        let options =
            JoinOptions::ring(&self.ring).lease_duration(Duration::from_secs(self.lease_seconds));
        let options = given(options, self.id.clone(), JoinOptions::id);
        let options = given(options, self.namespace.clone(), JoinOptions::namespace);
        let options = given(options, self.weight, JoinOptions::weight);
        let options = given(options, self.stateful_set.clone(), JoinOptions::stateful_set);
        given(options, self.pod(), JoinOptions::pod)
    }

    pub(crate) fn stop(&self) -> Stop {
        self.hold.map_or(Stop::Release, |seconds| Stop::Hold(Duration::from_secs(seconds)))
    }

    pub(crate) fn delay(&self) -> Duration {
        Duration::from_millis(self.delay_ms)
    }

    fn pod(&self) -> Option<Pod> {
        let (name, uid) = (self.pod_name.clone()?, self.pod_uid.clone()?);
        Some(Pod { name, uid, container: self.container.clone() })
    }
}

fn given<T>(
    options: JoinOptions,
    value: Option<T>,
    set: impl FnOnce(JoinOptions, T) -> JoinOptions,
) -> JoinOptions {
    match value {
        Some(value) => set(options, value),
        None => options,
    }
}
