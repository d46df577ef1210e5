//! `windlass autoscaler simcloud`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use kubekit::client;
use simcloud::{
    scenario::Scenario,
    server::Tls,
    service::{Options, Service, StartError},
};

use crate::{
    cli::autoscaler::SimcloudArgs,
    lifecycle, logging,
    report::{Exit, Failure, Outcome},
};

pub(super) fn run(arguments: SimcloudArgs) -> Outcome {
    logging::to_stderr(arguments.logs.log_level.into(), arguments.logs.log_format.into())?;
    let options = Options {
        scenario: scenario(&arguments.scenario)?,
        listen: arguments.listen,
        tls: tls(&arguments)?,
        connection: connection(arguments.kubeconfig, arguments.context),
    };
    lifecycle::until_signal(|shutdown| async move {
        let groups = options.scenario.groups.len();
        let service = Service::start(options, lifecycle::timestamp).await.map_err(not_started)?;
        tracing::info!(address = %service.address(), groups, "serving a simulated cloud");
        service.run(shutdown).await.map_err(|error| {
            Failure::new(Exit::No, error).with_hint("nothing is kept; start it again")
        })
    })?;
    tracing::info!("stopped");
    Ok(())
}

pub(super) fn scenario(path: &Path) -> Result<Scenario, Failure> {
    let text = String::from_utf8(read(path)?).map_err(|error| {
        let error = anyhow::Error::new(error).context(format!("{} is no text", path.display()));
        Failure::new(Exit::Usage, error).with_hint("write the scenario in YAML, in UTF-8")
    })?;
    Scenario::parse(&text).map_err(|error| {
        let error = anyhow::Error::new(error).context(path.display().to_string());
        Failure::new(Exit::Usage, error).with_hint("docs/autoscaler.md explains every key")
    })
}

fn tls(arguments: &SimcloudArgs) -> Result<Option<Tls>, Failure> {
    let SimcloudArgs { cert, key, client_ca, .. } = arguments;
    let (Some(cert), Some(key), Some(client_ca)) = (cert, key, client_ca) else {
        return Ok(None);
    };
    Ok(Some(Tls { certificate: read(cert)?, key: read(key)?, client_ca: read(client_ca)? }))
}

/// Only a cluster that was named: Nodes that are not there would do harm in any other.
pub(super) fn connection(
    kubeconfig: Option<PathBuf>,
    context: Option<String>,
) -> Option<client::Options> {
    let kubeconfig = Some(kubeconfig?);
    Some(client::Options { kubeconfig, context, ..client::Options::default() })
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| {
        let error = anyhow::Error::new(error).context(format!("cannot read {}", path.display()));
        Failure::new(Exit::Usage, error).with_hint("check the path, and who may read it")
    })
}

pub(super) fn not_started(error: StartError) -> Failure {
    let (exit, hint) = match &error {
        StartError::Client(_) => (Exit::Usage, "name a kubeconfig that works for kubectl"),
        StartError::Tls(_) => (Exit::Usage, "check --cert, --key and --client-ca"),
        StartError::Listen { .. } => {
            (Exit::No, "`ss -ltnp` shows who listens; choose another address with --listen")
        }
    };
    Failure::new(exit, error).with_hint(hint)
}
