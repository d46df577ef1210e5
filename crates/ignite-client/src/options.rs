//! How to connect.

use std::{fmt, io, sync::Arc, time::Duration};

use rustls::{ClientConfig, pki_types::ServerName};

/// Long enough for a busy node, short enough that the next address gets its turn.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Above the 30 seconds after which the server itself ends a transaction.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(40);
const HEARTBEAT_EVERY: Duration = Duration::from_secs(5);
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(5);
/// The largest message in either direction. A row of 16 MiB fits, as do pages of many.
const MESSAGE_BYTES_MAX: usize = 256 << 20;

/// How to connect. Start from [`Options::new`] and change what has to differ.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// `HOST:PORT` of nodes, any of which will do. The first that answers is used; the others are
    /// tried when it is lost.
    pub addresses: Vec<String>,
    pub credentials: Option<Credentials>,
    pub tls: Option<Tls>,
    pub connect_timeout: Duration,
    pub request_timeout: Duration,
    /// How often a silent connection is asked whether it lives, and how long it has to answer.
    pub heartbeat_every: Duration,
    pub heartbeat_timeout: Duration,
    pub message_bytes_max: usize,
}

/// A user of the basic kind. Its `Debug` does not show the password.
#[derive(Clone)]
pub struct Credentials {
    pub user: String,
    pub password: String,
}

/// How servers prove who they are.
#[derive(Clone, Debug)]
pub struct Tls {
    pub config: Arc<ClientConfig>,
    /// The name in the servers' certificates, where it is not the host of the address.
    pub server_name: Option<ServerName<'static>>,
}

// === impl Options ===

impl Options {
    pub fn new<A: Into<String>>(addresses: impl IntoIterator<Item = A>) -> Self {
        Self {
            addresses: addresses.into_iter().map(Into::into).collect(),
            credentials: None,
            tls: None,
            connect_timeout: CONNECT_TIMEOUT,
            request_timeout: REQUEST_TIMEOUT,
            heartbeat_every: HEARTBEAT_EVERY,
            heartbeat_timeout: HEARTBEAT_TIMEOUT,
            message_bytes_max: MESSAGE_BYTES_MAX,
        }
    }
}

// === impl Tls ===

impl Tls {
    /// The name that the certificate of the server at `HOST:PORT` must have.
    ///
    /// # Errors
    ///
    /// If the host can be no name in a certificate.
    pub fn name_of(&self, address: &str) -> io::Result<ServerName<'static>> {
        if let Some(name) = &self.server_name {
            return Ok(name.clone());
        }
        let host = address.rsplit_once(':').map_or(address, |(host, _port)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        ServerName::try_from(host.to_owned()).map_err(io::Error::other)
    }
}

// === impl Credentials ===

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use rustls::RootCertStore;

    use super::*;

    #[test]
    fn a_server_is_known_by_its_host_unless_a_name_is_given() {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        let mut tls = Tls { config: Arc::new(config), server_name: None };
        let check = |tls: &Tls, address| tls.name_of(address).unwrap().to_str().into_owned();
        assert_eq!(check(&tls, "node.example:10800"), "node.example");
        assert_eq!(check(&tls, "127.0.0.1:10800"), "127.0.0.1");
        assert_eq!(check(&tls, "[::1]:10800"), "::1");
        assert!(tls.name_of("a b:1").is_err());
        tls.server_name = Some("grid".try_into().unwrap());
        assert_eq!(check(&tls, "127.0.0.1:10800"), "grid");
    }
}
