//! The way to the API server: whose credentials, how many requests at once, how long to wait for an
//! answer, and counting them. Owns the making of clients; sends nothing itself.

mod counted;

use std::path::PathBuf;
use std::time::Duration;

use http::header::USER_AGENT;
use http::{HeaderValue, header::InvalidHeaderValue};
use kube::client::ClientBuilder;
use kube::config::{InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use tower::limit::ConcurrencyLimitLayer;
use tower::timeout::TimeoutLayer;

use self::counted::CountedLayer;
use crate::metrics::Requests;

/// Requests about Leases under way at once: more than any service has workers, so that in practice
/// none waits.
const LEASE_INFLIGHT_MAX: usize = 64;

/// How long establishing a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub struct Options {
    /// Without one, the service account that Kubernetes gives to the pod is used.
    pub kubeconfig: Option<PathBuf>,
    /// Of the kubeconfig; its current one unless named.
    pub context: Option<String>,
    /// What the API server's logs call us.
    pub user_agent: String,
    /// Requests under way at once. A watch counts until its answer begins.
    pub inflight_max: usize,
    /// How long an answer may take to begin. What follows is bounded by whoever reads it.
    pub answer_timeout: Duration,
    pub repeats: Repeats,
}

/// Whether the client sends a request again when the server says that it is too busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// Every request is sent once, and its failure is the caller's to judge.
    Never,
    /// kube's policy: up to 15 repetitions after 429, 503 or 504, of writes too. So a POST that
    /// succeeded may be answered by `AlreadyExists`, and a request may take as long as
    /// [`Options::answer_timeout`].
    WhenBusy,
}

/// A cluster we can talk to.
#[derive(Clone)]
pub struct Cluster {
    config: Config,
    options: Options,
    requests: Requests,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read the kubeconfig {}", path.display())]
    ReadKubeconfig {
        path: PathBuf,
        #[source]
        source: KubeconfigError,
    },
    #[error("the kubeconfig {} names no cluster to talk to{}", path.display(), in_context(context.as_ref()))]
    UseKubeconfig {
        path: PathBuf,
        context: Option<String>,
        #[source]
        source: KubeconfigError,
    },
    #[error(
        "there is no service account: not in a pod, or it mounts none; give a kubeconfig instead"
    )]
    NoServiceAccount {
        #[source]
        source: InClusterError,
    },
    #[error("there is no kubeconfig that could have the context `{context}`")]
    NoKubeconfig { context: String },
    #[error("`{user_agent}` cannot be a user agent")]
    UserAgent {
        user_agent: String,
        #[source]
        source: InvalidHeaderValue,
    },
    #[error("cannot make a client for {url}")]
    Client {
        url: http::Uri,
        #[source]
        source: Box<kube::Error>,
    },
}

// === impl Options ===

impl Default for Options {
    fn default() -> Self {
        Self {
            kubeconfig: None,
            context: None,
            user_agent: concat!("windlass/", env!("CARGO_PKG_VERSION")).to_owned(),
            inflight_max: 32,
            answer_timeout: Duration::from_secs(30),
            repeats: Repeats::Never,
        }
    }
}

// === impl Cluster ===

impl Cluster {
    /// Reads credentials; talks to nobody yet. `requests` counts what all clients send.
    pub async fn open(options: Options, requests: Requests) -> Result<Self, Error> {
        let mut config = match (&options.kubeconfig, &options.context) {
            (Some(path), context) => from_kubeconfig(path.clone(), context.clone()).await?,
            // The pod's own cluster may be another one than was meant.
            (None, Some(context)) => return Err(Error::NoKubeconfig { context: context.clone() }),
            (None, None) => {
                Config::incluster().map_err(|source| Error::NoServiceAccount { source })?
            }
        };
        let user_agent = HeaderValue::from_str(&options.user_agent).map_err(|source| {
            Error::UserAgent { user_agent: options.user_agent.clone(), source }
        })?;
        config.headers.push((USER_AGENT, user_agent));
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        Ok(Self { config, options, requests })
    }

    /// Where the API server is.
    #[must_use]
    pub fn url(&self) -> &http::Uri {
        &self.config.cluster_url
    }

    /// A client for everything but Leases.
    pub fn client(&self) -> Result<Client, Error> {
        self.build(self.options.repeats, self.options.inflight_max)
    }

    /// A client for Leases: it never repeats, and renewals never wait behind other requests.
    pub fn lease_client(&self) -> Result<Client, Error> {
        self.build(Repeats::Never, LEASE_INFLIGHT_MAX)
    }

    /// Layers, from the inside: the time for an answer does not include the wait for a free place.
    fn build(&self, repeats: Repeats, inflight_max: usize) -> Result<Client, Error> {
        let mut config = self.config.clone();
        config.default_retry = repeats == Repeats::WhenBusy;
        let builder = ClientBuilder::try_from(config).map_err(|source| Error::Client {
            url: self.url().clone(),
            source: Box::new(source),
        })?;
        Ok(builder
            .with_layer(&TimeoutLayer::new(self.options.answer_timeout))
            .with_layer(&CountedLayer::new(self.requests.clone()))
            .with_layer(&ConcurrencyLimitLayer::new(inflight_max))
            .build())
    }
}

async fn from_kubeconfig(path: PathBuf, context: Option<String>) -> Result<Config, Error> {
    let kubeconfig = match Kubeconfig::read_from(&path) {
        Ok(kubeconfig) => kubeconfig,
        Err(source) => return Err(Error::ReadKubeconfig { path, source }),
    };
    let choice = KubeConfigOptions { context: context.clone(), ..KubeConfigOptions::default() };
    let config = Config::from_custom_kubeconfig(kubeconfig, &choice).await;
    config.map_err(|source| Error::UseKubeconfig { path, context, source })
}

fn in_context(context: Option<&String>) -> String {
    context.map(|context| format!(" in context `{context}`")).unwrap_or_default()
}

#[cfg(test)]
mod tests;
