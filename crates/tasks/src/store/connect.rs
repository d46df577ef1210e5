//! Finding the store: endpoints, certificates, and how a dead connection is noticed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

/// A store on the other side of the world answers within this.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// etcd hangs up on whoever asks oftener than every 5 s whether it is there.
const PING_EVERY: Duration = Duration::from_secs(10);
const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// Where the store is and how to speak to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// `http://` or `https://` addresses of members of one store. At least one.
    pub endpoints: Vec<String>,
    /// For `https://` endpoints.
    pub tls: Option<Tls>,
}

/// Files are PEM, and read when a connection is prepared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// Who signed the store's certificate.
    pub ca_file: PathBuf,
    /// What the store knows us by.
    pub cert_file: PathBuf,
    pub key_file: PathBuf,
}

/// Why no connection can be prepared. That nobody answers is found out later.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("no endpoint of the store is given")]
    NoEndpoint,
    #[error("`{endpoint}` is not an endpoint")]
    Endpoint {
        endpoint: String,
        #[source]
        source: tonic::transport::Error,
    },
    #[error("`{endpoint}` needs certificates")]
    NoTls { endpoint: String },
    #[error("cannot read {}", path.display())]
    ReadPem {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("the certificates for `{endpoint}` cannot be used")]
    Tls {
        endpoint: String,
        #[source]
        source: tonic::transport::Error,
    },
}

/// One connection per endpoint, made when it is needed. Requests go to whichever answers.
pub(super) fn channel(options: &Options) -> Result<Channel, ConnectError> {
    let tls = options.tls.as_ref().map(Tls::read).transpose()?;
    let prepared = options.endpoints.iter().map(|endpoint| prepare(endpoint, tls.as_ref()));
    let prepared = prepared.collect::<Result<Vec<Endpoint>, ConnectError>>()?;
    match prepared.as_slice() {
        [] => Err(ConnectError::NoEndpoint),
        [only] => Ok(only.connect_lazy()),
        _ => Ok(Channel::balance_list(prepared.into_iter())),
    }
}

fn prepare(endpoint: &str, tls: Option<&ClientTlsConfig>) -> Result<Endpoint, ConnectError> {
    let named = || endpoint.to_owned();
    let prepared = Endpoint::from_shared(named())
        .map_err(|source| ConnectError::Endpoint { endpoint: named(), source })?
        .connect_timeout(CONNECT_TIMEOUT)
        .http2_keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_TIMEOUT)
        .keep_alive_while_idle(true);
    if prepared.uri().scheme_str() != Some("https") {
        return Ok(prepared);
    }
    let tls = tls.ok_or_else(|| ConnectError::NoTls { endpoint: named() })?;
    let secured = prepared.tls_config(tls.clone());
    secured.map_err(|source| ConnectError::Tls { endpoint: named(), source })
}

// === impl Tls ===

impl Tls {
    pub(crate) fn read(&self) -> Result<ClientTlsConfig, ConnectError> {
        let identity = Identity::from_pem(read_pem(&self.cert_file)?, read_pem(&self.key_file)?);
        let ca = Certificate::from_pem(read_pem(&self.ca_file)?);
        Ok(ClientTlsConfig::new().ca_certificate(ca).identity(identity))
    }
}

fn read_pem(path: &Path) -> Result<Vec<u8>, ConnectError> {
    std::fs::read(path).map_err(|source| ConnectError::ReadPem { path: path.to_owned(), source })
}
