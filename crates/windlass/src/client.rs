//! Connects to a running store, for the commands that ask one something.

pub(crate) mod http;
mod session;

use std::{path::PathBuf, time::Duration};

use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use crate::{
    cli::{ClientArgs, TlsArgs},
    report::{Exit, Failure},
};

pub(crate) use session::Session;

/// A store on the other side of the world answers within this.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A store that owes an answer is asked this often for a sign of life; etcd takes it amiss every 5 s.
const PING_EVERY: Duration = Duration::from_secs(10);
/// How long it may take to give one, whatever the answer takes.
const PING_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("`{endpoint}` is not an endpoint")]
    Endpoint {
        endpoint: String,
        #[source]
        source: tonic::transport::Error,
    },
    #[error("cannot read {}", path.display())]
    ReadPem {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("--cert and --key must be given together")]
    HalfIdentity,
    #[error("the certificates cannot be used")]
    Tls {
        #[source]
        source: tonic::transport::Error,
    },
    #[error("cannot connect to {endpoint}")]
    Connect {
        endpoint: String,
        #[source]
        source: tonic::transport::Error,
    },
    #[error("the password of --user is missing")]
    NoPassword,
    #[error("the token of `{user}` cannot be sent")]
    Token { user: String },
}

/// Opens a connection and logs in on it.
pub(crate) async fn open(arguments: &ClientArgs) -> Result<Session, Failure> {
    let channel = connect(&arguments.endpoint, &arguments.tls).await?;
    Session::begin(channel, &arguments.login).await
}

/// Opens a connection. Bare `host:port` is plain HTTP, as for etcdctl.
pub(crate) async fn connect(endpoint: &str, tls: &TlsArgs) -> Result<Channel, Error> {
    let channel = prepare(endpoint, tls)?.connect().await;
    channel.map_err(|source| Error::Connect { endpoint: endpoint.to_owned(), source })
}

fn prepare(endpoint: &str, tls: &TlsArgs) -> Result<Endpoint, Error> {
    let text = match endpoint.contains("://") {
        true => endpoint.to_owned(),
        false => format!("http://{endpoint}"),
    };
    let is_secure = text.starts_with("https://");
    let prepared = Endpoint::from_shared(text)
        .map_err(|source| Error::Endpoint { endpoint: endpoint.to_owned(), source })?
        .connect_timeout(CONNECT_TIMEOUT)
        .http2_keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_TIMEOUT);
    if !is_secure {
        return Ok(prepared);
    }
    prepared.tls_config(tls_config(tls)?).map_err(|source| Error::Tls { source })
}

fn tls_config(arguments: &TlsArgs) -> Result<ClientTlsConfig, Error> {
    let mut tls = ClientTlsConfig::new();
    if let Some(path) = &arguments.cacert {
        tls = tls.ca_certificate(Certificate::from_pem(read_pem(path)?));
    }
    match (&arguments.cert, &arguments.key) {
        (Some(cert), Some(key)) => {
            Ok(tls.identity(Identity::from_pem(read_pem(cert)?, read_pem(key)?)))
        }
        (None, None) => Ok(tls),
        _ => Err(Error::HalfIdentity),
    }
}

fn read_pem(path: &PathBuf) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|source| Error::ReadPem { path: path.clone(), source })
}

// === impl Error ===

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let (exit, hint) = match &error {
            Error::Endpoint { .. } => (Exit::Usage, "write `http://127.0.0.1:2379`"),
            Error::ReadPem { .. } | Error::Tls { .. } => {
                (Exit::Usage, "check the files after --cacert, --cert and --key")
            }
            Error::HalfIdentity => (Exit::Usage, "give both, or neither"),
            Error::NoPassword => (Exit::Usage, "write `--user NAME:PASSWORD`, or add --password"),
            Error::Token { .. } => (Exit::No, "is it an etcd 3.5 or later that answers there?"),
            Error::Connect { .. } => (
                Exit::Unreachable,
                "is a store running there, and does --cacert know who signed its certificate?",
            ),
        };
        Self::new(exit, error).with_hint(hint)
    }
}

/// What the store refused, as a failure of the command.
pub(crate) fn refused(refusal: impl std::error::Error + Send + Sync + 'static) -> Failure {
    refused_perhaps(refusal, "the log of the store says more")
}

/// Why the store refused is for a person to read: the binary knows endpoints, not gRPC's codes. What the
/// store said has no cause on this side; what has one is a connection that failed.
fn refused_perhaps(
    refusal: impl std::error::Error + Send + Sync + 'static,
    hint: &'static str,
) -> Failure {
    if refusal.source().is_some() {
        let error = anyhow::Error::new(refusal).context("the store does not answer");
        return Failure::new(Exit::Unreachable, error).with_hint("is it still running there?");
    }
    let error = anyhow::Error::new(refusal).context("the store refused");
    Failure::new(Exit::No, error).with_hint(hint)
}
