//! `windlass labels run`, `watch` and `process`, and the same beside a store.

use std::{net::SocketAddr, path::PathBuf};

use super::{connect, settings};
use crate::{
    cli::labels::ServiceArgs,
    commands::kube,
    lifecycle::{self, Labels, Parts},
    logging,
    report::Outcome,
};
use kubekit::client;
use labels::options::{Options, Role};

pub(super) fn run(role: Role, arguments: ServiceArgs) -> Outcome {
    start_logging(&arguments)?;
    let connection = kube::client_options(&arguments.cluster.connect);
    let options = Options {
        role,
        identity: kube::identity(),
        namespaces: settings::namespaces(arguments.cluster.stores),
        policy: settings::policy(arguments.policy)?,
        workers: arguments.workers,
        max_inflight: arguments.max_inflight,
        resync: arguments.resync,
        checkpoint_delay: arguments.checkpoint_delay,
        listen: arguments.listen,
        is_dry_run: arguments.dry_run,
    };
    options.validate().map_err(connect::refused_options)?;
    let (version, identity) = (env!("CARGO_PKG_VERSION"), options.identity.clone());
    let is_dry_run = options.is_dry_run;
    tracing::info!(version, identity, ?role, is_dry_run, "starting the labels service");
    let labels = Some(Labels { options, connection });
    lifecycle::serve(Parts { labels, ..Parts::default() }, |ready| {
        if let Some(address) = ready.labels() {
            tracing::info!(%address, "serving health and metrics");
        }
        Ok(())
    })?;
    tracing::info!("stopped");
    Ok(())
}

/// Both services with nothing configured but the cluster.
pub(crate) fn beside_store(kubeconfig: PathBuf, listen: SocketAddr) -> Labels {
    let options = Options { listen, ..Options::new(kube::identity()) };
    let kubeconfig = Some(kubeconfig);
    Labels { options, connection: client::Options { kubeconfig, ..client::Options::default() } }
}

fn start_logging(arguments: &ServiceArgs) -> Outcome {
    logging::to_stderr(arguments.logs.log_level.into(), arguments.logs.log_format.into())
}
