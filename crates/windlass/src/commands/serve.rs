//! `windlass store serve`, and `etcd`.

use std::fs;

use store::Service;

use crate::{
    cli::{
        etcd_args::{self, Request},
        etcd_help,
    },
    commands::version,
    config::{layers::Layers, serve::Serve},
    lifecycle::{self, Parts},
    notify,
    report::{self, Exit, Failure, Outcome},
};

/// How systemd names the socket on which it waits for readiness.
const NOTIFY_SOCKET: &str = "NOTIFY_SOCKET";

pub(crate) fn run(arguments: &[String]) -> Outcome {
    let flags = match etcd_args::parse(arguments)? {
        Request::Help => return report::data(etcd_help::text().trim_end()),
        Request::Version => return version::run_as_etcd(),
        Request::Serve(flags) => flags,
    };
    // A variable that is not UTF-8 cannot be one of ours.
    let environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let layers = Layers { flags, environment, read_file: &|path| fs::read_to_string(path) };
    serve(Serve::of(layers.resolve()?)?)
}

fn serve(serve: Serve) -> Outcome {
    start_logging(&serve)?;
    for warning in &serve.warnings {
        tracing::warn!("{warning}");
    }
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        name = serve.options.name,
        journal = %serve.journal,
        "starting the store"
    );
    if let Some(certificate) = serve.self_signed {
        certificate.ensure(lifecycle::wall_clock()).map_err(|error| {
            Failure::new(Exit::No, error).with_hint("give --cert-file and --key-file instead")
        })?;
    }
    let store = Some((serve.journal, serve.options));
    lifecycle::serve(Parts { store, ..Parts::default() }, |ready| {
        for (traffic, address) in ready.store().into_iter().flat_map(Service::addresses) {
            tracing::info!(?traffic, %address, "listening");
        }
        // Tools that start etcd wait for this line.
        tracing::info!("ready to serve client requests");
        tell_systemd()
    })?;
    tracing::info!("stopped");
    Ok(())
}

pub(super) fn start_logging(serve: &Serve) -> Outcome {
    serve.log.start().map_err(|error| {
        Failure::new(Exit::Usage, error).with_hint("check --log-outputs, and who may write there")
    })
}

pub(super) fn tell_systemd() -> Outcome {
    let Some(socket) = std::env::var_os(NOTIFY_SOCKET) else { return Ok(()) };
    notify::ready(&socket).map_err(|error| {
        let error = anyhow::Error::new(error).context("systemd cannot be told of readiness");
        Failure::new(Exit::No, error).with_hint("unset NOTIFY_SOCKET if systemd did not set it")
    })
}
