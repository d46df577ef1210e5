//! The way to a node: over its socket in the file system, or over TCP with or without TLS.

use std::path::Path;
use std::time::Duration;

use tonic::transport::{Channel, Endpoint};

use super::Error;
use crate::store::Tls;

/// A node on the other side of the world answers within this.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A node this long silent is asked for a sign of life, so that who follows a log learns that the
/// node is gone.
const PING_EVERY: Duration = Duration::from_secs(10);
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// Where a node is, and how to be known there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// `unix:///path`, `http://host:port`, `https://host:port`; without a scheme `host:port`.
    pub address: String,
    /// With it, an address without a scheme means TLS. Read for each connection, so that a renewed
    /// certificate is used without a restart.
    pub tls: Option<Tls>,
}

pub(super) async fn channel(options: &Options) -> Result<Channel, Error> {
    let address = &options.address;
    let channel = endpoint(options)?.connect().await;
    channel.map_err(|source| Error::Connect { address: address.clone(), source })
}

fn endpoint(options: &Options) -> Result<Endpoint, Error> {
    let url = options.url();
    let endpoint = Endpoint::from_shared(url.clone())
        .map_err(|source| Error::Address { address: options.address.clone(), source })?
        .connect_timeout(CONNECT_TIMEOUT)
        .http2_keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_TIMEOUT);
    match &options.tls {
        Some(tls) if url.starts_with("https:") => {
            endpoint.tls_config(tls.read().map_err(Error::Certificates)?).map_err(Error::Tls)
        }
        _ => Ok(endpoint),
    }
}

// === impl Options ===

impl Options {
    /// A socket in the file system.
    #[must_use]
    pub fn unix(path: &Path) -> Self {
        Self { address: format!("unix://{}", path.display()), tls: None }
    }

    fn url(&self) -> String {
        let has_scheme = self.address.contains("://");
        match (has_scheme, &self.tls) {
            (true, _) => self.address.clone(),
            (false, Some(_)) => format!("https://{}", self.address),
            (false, None) => format!("http://{}", self.address),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn an_address_without_scheme_is_encrypted_if_it_can_be() {
        let file = PathBuf::new();
        let tls = Tls { ca_file: file.clone(), cert_file: file.clone(), key_file: file };
        for (address, has_tls, url) in [
            ("127.0.0.2:8080", false, "http://127.0.0.2:8080"),
            ("node2:8080", true, "https://node2:8080"),
            ("http://127.0.0.1:1", true, "http://127.0.0.1:1"),
            ("unix:///run/windlass/node.sock", true, "unix:///run/windlass/node.sock"),
        ] {
            let tls = has_tls.then(|| tls.clone());
            assert_eq!(Options { address: address.to_owned(), tls }.url(), url);
        }
        let socket = Options::unix(Path::new("/run/windlass/node.sock"));
        assert_eq!(socket.url(), "unix:///run/windlass/node.sock");
    }
}
