//! TLS of a listener: which certificate is shown, which client certificates are accepted, and who
//! a client is by its certificate. Never decides what a client may do.

mod certificate;
mod client;
mod protocol;
mod revoked;
mod self_signed;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{InvalidDnsNameError, pem};
use rustls::server::NoServerSessionStorage;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

pub use self::self_signed::{Error as SelfSignedError, SelfSigned};

use self::certificate::Certificate;
use super::listen::Stream;
use crate::auth::PeerIdentity;
use crate::options::Tls;

/// A client that connects and then stays silent holds a connection no longer than this.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// In order of preference; without a common one a client speaks HTTP/1.
const HTTP2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

/// How connections of one listener become encrypted.
#[derive(Clone)]
pub(super) struct Handshake {
    acceptor: TlsAcceptor,
    /// Whether a client's certificate says who it is.
    names_clients: bool,
}

/// A connection after its handshake.
pub(super) struct Encrypted {
    pub(super) stream: TlsStream<Stream>,
    pub(super) identity: Option<PeerIdentity>,
    pub(super) is_http2: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read the certificate {}", path.display())]
    ReadCertificate {
        path: PathBuf,
        #[source]
        source: pem::Error,
    },
    #[error("cannot read the private key {}", path.display())]
    ReadKey {
        path: PathBuf,
        #[source]
        source: pem::Error,
    },
    #[error("the key {} cannot serve the certificate {}", key.display(), certificate.display())]
    Pair {
        certificate: PathBuf,
        key: PathBuf,
        #[source]
        source: rustls::Error,
    },
    #[error("cannot look at {}", path.display())]
    Inspect {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot read the trusted certificates {}", path.display())]
    ReadTrusted {
        path: PathBuf,
        #[source]
        source: pem::Error,
    },
    #[error("a certificate in {} cannot be trusted", path.display())]
    Trust {
        path: PathBuf,
        #[source]
        source: rustls::Error,
    },
    #[error("the trusted certificates in {} cannot verify clients", path.display())]
    Verifier {
        path: PathBuf,
        #[source]
        source: rustls::server::VerifierBuilderError,
    },
    #[error(
        "client certificates are asked for without a CA to verify them; name a trusted CA file"
    )]
    NoTrustedCa,
    #[error("`{name}` is neither a host name nor an address that a certificate could have")]
    HostName {
        name: String,
        #[source]
        source: InvalidDnsNameError,
    },
    #[error("cannot read the revocation list {}", path.display())]
    ReadRevoked {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} holds no revocation list", path.display())]
    NoRevocationList { path: PathBuf },
    #[error("the PEM of the revocation list {} is malformed", path.display())]
    DecodeRevoked {
        path: PathBuf,
        #[source]
        source: pem::Error,
    },
    #[error("the revocation list {} is malformed", path.display())]
    Revoked {
        path: PathBuf,
        #[source]
        source: rustls::server::VerifierBuilderError,
    },
    #[error("the chosen versions and cipher suites of TLS leave nothing to agree on")]
    Protocol(#[source] rustls::Error),
}

#[derive(Debug, thiserror::Error)]
pub(super) enum HandshakeError {
    #[error("no TLS handshake within {} s", HANDSHAKE_TIMEOUT.as_secs())]
    Timeout,
    #[error("TLS handshake failed")]
    Failed(#[source] io::Error),
}

// === impl Handshake ===

impl Handshake {
    pub(super) fn load(options: &Tls) -> Result<Self, Error> {
        let provider = Arc::new(protocol::provider(options));
        let clients = client::verifier(options, &provider)?;
        let certificate = Certificate::load(options, Arc::clone(&provider))?;
        let builder = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&protocol::versions(options))
            .map_err(Error::Protocol)?;
        let mut config =
            builder.with_client_cert_verifier(clients).with_cert_resolver(Arc::new(certificate));
        config.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec()];
        if options.crl_file.is_some() {
            // A resumed session would skip the list.
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        }
        let names_clients = options.requires_client_cert || options.names_voluntary_clients;
        Ok(Self { acceptor: Arc::new(config).into(), names_clients })
    }

    pub(super) async fn perform(&self, stream: Stream) -> Result<Encrypted, HandshakeError> {
        let stream = tokio::time::timeout(HANDSHAKE_TIMEOUT, self.acceptor.accept(stream))
            .await
            .map_err(|_elapsed| HandshakeError::Timeout)?
            .map_err(HandshakeError::Failed)?;
        let (_, session) = stream.get_ref();
        let identity = if self.names_clients { client::identity(session) } else { None };
        let is_http2 = session.alpn_protocol() == Some(HTTP2);
        Ok(Encrypted { stream, identity, is_http2 })
    }
}

type Provider = Arc<CryptoProvider>;

/// When a file last changed.
fn modified(path: &Path) -> Result<SystemTime, Error> {
    std::fs::metadata(path)
        .and_then(|metadata| metadata.modified())
        .map_err(|source| Error::Inspect { path: path.to_owned(), source })
}
