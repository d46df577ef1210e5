//! The connection: where to, whom to trust, and who we are.

use std::fmt;
use std::time::Duration;

use http::uri::{Authority, InvalidUri};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use super::Options;

/// How often an idle connection is tried, so that one that died unseen is not waited for. TCP does it:
/// providers written in Go end connections that ping more often than every five minutes.
const PROBE_INTERVAL: Duration = Duration::from_secs(30);

/// Certificates and keys in PEM.
#[derive(Clone)]
pub struct Tls {
    /// Whom we trust.
    pub ca: Vec<u8>,
    /// Who we are.
    pub certificate: Vec<u8>,
    pub key: Vec<u8>,
}

#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("`{address}` is no address; write a host and a port")]
    Address {
        address: String,
        #[source]
        source: InvalidUri,
    },
    #[error("`{address}` names no port; write a host and a port")]
    NoPort { address: String },
    #[error("`{address}` cannot be connected to")]
    Endpoint {
        address: String,
        #[source]
        source: tonic::transport::Error,
    },
    #[error("the certificates for the provider cannot be used")]
    Tls(#[source] tonic::transport::Error),
}

/// A channel that connects with its first call.
pub(super) fn lazily(options: &Options) -> Result<Channel, ConnectError> {
    let address = || options.address.clone();
    let authority: Authority = options
        .address
        .parse()
        .map_err(|source| ConnectError::Address { address: address(), source })?;
    if authority.port().is_none() {
        return Err(ConnectError::NoPort { address: address() });
    }
    let scheme = if options.tls.is_some() { "https" } else { "http" };
    let endpoint = Endpoint::from_shared(format!("{scheme}://{authority}"))
        .map_err(|source| ConnectError::Endpoint { address: address(), source })?
        .connect_timeout(options.timeouts.read.max(options.timeouts.mutate))
        .tcp_keepalive(Some(PROBE_INTERVAL));
    let endpoint = match &options.tls {
        Some(tls) => endpoint.tls_config(tls.for_host(authority.host())),
        None => Ok(endpoint),
    };
    Ok(endpoint.map_err(ConnectError::Tls)?.connect_lazy())
}

// === impl Tls ===

impl Tls {
    fn for_host(&self, host: &str) -> ClientTlsConfig {
        // An IPv6 address stands in brackets there, and not in certificates.
        let host = host.trim_start_matches('[').trim_end_matches(']');
        ClientTlsConfig::new()
            .domain_name(host)
            .ca_certificate(Certificate::from_pem(&self.ca))
            .identity(Identity::from_pem(&self.certificate, &self.key))
    }
}

impl fmt::Debug for Tls {
    /// The key is kept out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::config::Timeouts;

    #[tokio::test]
    async fn an_address_is_a_host_and_a_port() {
        let second = Duration::from_secs(1);
        let connect = |address: &str| {
            let timeouts = Timeouts { read: second, mutate: second };
            lazily(&Options { address: address.to_owned(), tls: None, timeouts })
        };
        assert!(connect("cloud.example:8086").is_ok());
        assert!(connect("[::1]:8086").is_ok());
        assert!(matches!(connect("cloud"), Err(ConnectError::NoPort { .. })));
        assert!(matches!(connect("http://cloud:1"), Err(ConnectError::Address { .. })));
        assert!(matches!(connect(""), Err(ConnectError::Address { .. })));
    }
}
