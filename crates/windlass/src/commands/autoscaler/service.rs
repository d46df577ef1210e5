//! `windlass autoscaler run`, and the same beside a store, where it only looks.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use ::simcloud::{scenario::Scenario, service::Local};
use autoscaler::{
    Options, Service, StartError, Surroundings,
    options::Mode,
    provider::{Absent, Provider, config, grpc},
};
use kubekit::client;
use registry::UnreadyScope;
use tokio_util::sync::CancellationToken;

use super::{recorder::Recorder, simcloud};
use crate::{
    autoscaler_flags::{self, Request, SIMCLOUD, Settings},
    cli::kube::ConnectArgs,
    commands::kube,
    lifecycle::{self, Autoscaler},
    logging,
    report::{self, Exit, Failure, Outcome},
};

/// Who is asked for nodes.
enum Cloud {
    Elsewhere(grpc::Options),
    /// Within this process.
    Simulated(Box<Scenario>),
}

const HELP: &str = "`windlass autoscaler run --help` explains every flag";

pub(super) fn run(flags: &[String]) -> Outcome {
    let settings = match autoscaler_flags::parse(flags, kube::identity()) {
        Ok(Request::Run(settings)) => *settings,
        Ok(Request::Help) => return report::data(autoscaler_flags::help().trim_end()),
        Err(error) => {
            let hint = error.hint();
            return Err(Failure::new(Exit::Usage, error).with_hint(hint));
        }
    };
    start_logging(&settings)?;
    for flag in &settings.ignored {
        tracing::warn!("--{flag} has no counterpart here and does nothing");
    }
    settings.options.validate().map_err(|error| usage(error, HELP))?;
    let cloud = cloud(&settings)?;
    let connect = ConnectArgs { kubeconfig: settings.kubeconfig, context: settings.context };
    let (options, record) = (settings.options, settings.record_inputs);
    let (version, identity) = (env!("CARGO_PKG_VERSION"), options.identity.clone());
    tracing::info!(version, identity, mode = ?options.mode, "starting the autoscaler");
    lifecycle::until_signal(|shutdown| async move {
        let recorder = record.map(|path| Recorder::start(&path, &options)).transpose()?;
        let (writer, recorder) = recorder.unzip();
        let (connection, clock) = (kube::client_options(&connect), lifecycle::timestamp);
        let ended = match cloud {
            Cloud::Elsewhere(provider) => {
                let provider = grpc::Grpc::new(provider).map_err(|error| {
                    usage(error, "check the address and the certificates in --cloud-config")
                })?;
                let surroundings = Surroundings { provider, connection, clock, recorder };
                serve(options, surroundings, shutdown).await
            }
            Cloud::Simulated(scenario) => {
                let kubelets = simcloud::connection(connect.kubeconfig, connect.context);
                let cloud = Local::start(*scenario, kubelets, clock).await;
                let cloud = cloud.map_err(simcloud::not_started)?;
                let provider = cloud.provider();
                let surroundings = Surroundings { provider, connection, clock, recorder };
                beside(cloud, serve(options, surroundings, shutdown)).await
            }
        };
        if let Some(writer) = writer {
            writer.finish()?;
        }
        ended
    })?;
    tracing::info!("stopped");
    Ok(())
}

async fn serve<P: Provider + 'static>(
    options: Options,
    surroundings: Surroundings<P>,
    shutdown: CancellationToken,
) -> Result<(), Failure> {
    let service = Service::start(options, surroundings).await.map_err(not_started)?;
    tracing::info!(address = %service.address(), "serving health, metrics and answers");
    service.run(shutdown).await.map_err(|error| {
        let hint = "nothing is lost: everything is in Kubernetes; start again";
        Failure::new(Exit::No, error).with_hint(hint)
    })
}

/// The cloud is there for as long as who asks it.
async fn beside(
    cloud: Local,
    serving: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    let end = CancellationToken::new();
    let served = async {
        let served = serving.await;
        end.cancel();
        served
    };
    let (served, ()) = tokio::join!(served, cloud.run(end.clone()));
    served
}

/// With nothing configured but the cluster: without a provider there is nothing to scale.
pub(crate) fn beside_store(kubeconfig: PathBuf, listen: SocketAddr) -> Autoscaler {
    let mut options = Options { listen, mode: Mode::Observe, ..Options::new(kube::identity()) };
    options.registry.unready_scope = UnreadyScope::All;
    let connection = client::Options { kubeconfig: Some(kubeconfig), ..client::Options::default() };
    let clock = lifecycle::timestamp;
    let surroundings = Surroundings { provider: Absent, connection, clock, recorder: None };
    Autoscaler { options, surroundings }
}

fn start_logging(settings: &Settings) -> Outcome {
    use crate::cli::logs::{LogFormat, LogLevel};
    let level = match settings.log_level.as_str() {
        "error" => LogLevel::Error,
        "warn" => LogLevel::Warn,
        "debug" => LogLevel::Debug,
        _ => LogLevel::Info,
    };
    let is_console = settings.log_format == "console";
    let format = if is_console { LogFormat::Console } else { LogFormat::Json };
    logging::to_stderr(level.into(), format.into())
}

/// What is asked for nodes; the files that say so are read here.
fn cloud(settings: &Settings) -> Result<Cloud, Failure> {
    let Some(path) = &settings.cloud_config else {
        let error = anyhow::anyhow!("--cloud-config is missing");
        return Err(Failure::new(Exit::Usage, error).with_hint(
            "name the file that says where the provider is; docs/autoscaler.md has one",
        ));
    };
    if settings.cloud_provider == SIMCLOUD {
        return Ok(Cloud::Simulated(Box::new(simcloud::scenario(path)?)));
    }
    provider(path).map(Cloud::Elsewhere)
}

fn provider(path: &Path) -> Result<grpc::Options, Failure> {
    let text = read(path)?;
    let text = String::from_utf8(text).map_err(|error| {
        usage(anyhow::Error::new(error).context(format!("{} is no text", path.display())), HELP)
    })?;
    let config::Config { address, tls, timeouts } =
        config::Config::parse(&text).map_err(|error| {
            let error = anyhow::Error::new(error).context(path.display().to_string());
            usage(error, "docs/autoscaler.md explains every key")
        })?;
    let tls = match tls {
        Some(files) => Some(grpc::Tls {
            ca: read(&files.ca)?,
            certificate: read(&files.certificate)?,
            key: read(&files.key)?,
        }),
        None => None,
    };
    Ok(grpc::Options { address, tls, timeouts })
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| {
        let error = anyhow::Error::new(error).context(format!("cannot read {}", path.display()));
        usage(error, "check the path, and who may read it")
    })
}

fn usage(error: impl Into<anyhow::Error>, hint: &'static str) -> Failure {
    Failure::new(Exit::Usage, error).with_hint(hint)
}

pub(crate) fn not_started(error: StartError) -> Failure {
    let (exit, hint) = match &error {
        StartError::Client(_) => {
            (Exit::Usage, "name a kubeconfig that works for kubectl with --kubeconfig")
        }
        StartError::Options(_) | StartError::Timings(_) => (Exit::Usage, HELP),
        StartError::Health(_) => {
            (Exit::No, "`ss -ltnp` shows who listens; choose another address with --address")
        }
    };
    Failure::new(exit, error).with_hint(hint)
}
