//! `windlass labels run`, `watch` and `process`, and the same beside a store.

use std::{net::SocketAddr, path::PathBuf};

use kubekit::client;
use labels::options::{Options, Role};
use tracing::level_filters::LevelFilter;

use super::{connect, settings};
use crate::{
    cli::labels::{LogFormat, LogLevel, ServiceArgs},
    lifecycle::{self, Labels},
    logging,
    report::{Exit, Failure, Outcome},
};

pub(super) fn run(role: Role, arguments: ServiceArgs, is_dry_run: bool) -> Outcome {
    start_logging(&arguments)?;
    let connection = connect::client_options(&arguments.cluster);
    let options = Options {
        role,
        identity: connect::identity(),
        namespaces: settings::namespaces(arguments.cluster.stores),
        policy: settings::policy(arguments.policy)?,
        workers: arguments.workers,
        max_inflight: arguments.max_inflight,
        resync: arguments.resync,
        checkpoint_delay: arguments.checkpoint_delay,
        listen: arguments.listen,
        is_dry_run,
    };
    options.validate().map_err(connect::refused_options)?;
    let (version, identity) = (env!("CARGO_PKG_VERSION"), options.identity.clone());
    tracing::info!(version, identity, ?role, is_dry_run, "starting the labels service");
    lifecycle::serve_labels(Labels { options, connection }, |address| {
        tracing::info!(%address, "serving health and metrics");
    })?;
    tracing::info!("stopped");
    Ok(())
}

/// Both services with nothing configured but the cluster.
pub(crate) fn beside_store(kubeconfig: PathBuf, listen: SocketAddr) -> Labels {
    let options = Options { listen, ..Options::new(connect::identity()) };
    let kubeconfig = Some(kubeconfig);
    Labels { options, connection: client::Options { kubeconfig, ..client::Options::default() } }
}

fn start_logging(arguments: &ServiceArgs) -> Outcome {
    let options = logging::Options {
        level: match arguments.log_level {
            LogLevel::Error => LevelFilter::ERROR,
            LogLevel::Warn => LevelFilter::WARN,
            LogLevel::Info => LevelFilter::INFO,
            LogLevel::Debug => LevelFilter::DEBUG,
        },
        format: match arguments.log_format {
            LogFormat::Json => logging::Format::Json,
            LogFormat::Console => logging::Format::Console,
        },
        outputs: vec![logging::Output::Stderr],
    };
    options.start().map_err(|error| Failure::new(Exit::No, error))
}
