//! `windlass sharder run`, and the same beside a store.

use std::{net::SocketAddr, path::PathBuf};

use kubekit::client;
use sharding::sharder::{Options, options};

use crate::{
    cli::sharder::RunArgs,
    commands::kube,
    lifecycle::{self, Parts, Sharder},
    logging,
    report::{Exit, Failure, Outcome},
};

pub(super) fn run(arguments: RunArgs) -> Outcome {
    logging::to_stderr(arguments.logs.log_level.into(), arguments.logs.log_format.into())?;
    let options = Options {
        identity: kube::identity(),
        namespace: arguments.cluster.sharder_namespace,
        listen: arguments.listen,
        max_inflight: arguments.max_inflight,
    };
    options.validate().map_err(refused)?;
    let (version, identity) = (env!("CARGO_PKG_VERSION"), options.identity.clone());
    tracing::info!(version, identity, "starting the sharder");
    let connection = kube::client_options(&arguments.cluster.connect);
    let sharder = Some(Sharder { options, connection });
    lifecycle::serve_on_one_thread(Parts { sharder, ..Parts::default() }, |ready| {
        if let Some(address) = ready.sharder() {
            tracing::info!(%address, "serving health and metrics");
        }
        Ok(())
    })?;
    tracing::info!("stopped");
    Ok(())
}

/// With nothing configured but the cluster.
pub(crate) fn beside_store(kubeconfig: PathBuf, listen: SocketAddr) -> Sharder {
    let options = Options { listen, ..Options::new(kube::identity()) };
    let kubeconfig = Some(kubeconfig);
    Sharder { options, connection: client::Options { kubeconfig, ..client::Options::default() } }
}

fn refused(error: options::Error) -> Failure {
    Failure::new(Exit::Usage, error).with_hint("`windlass sharder run --help` explains every flag")
}
