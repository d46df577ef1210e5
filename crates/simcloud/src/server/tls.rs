//! Who the server is by its certificate, and who it trusts. It also has a certificate that nobody
//! trusts, for when that is scripted.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// A client that connects and then stays silent holds a connection no longer than this.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// gRPC is spoken over nothing else.
const HTTP2: &[u8] = b"h2";

/// Whom no certificate was ever asked for.
const IMPOSTOR: &str = "impostor.invalid";

/// Certificates and keys in PEM.
#[derive(Clone)]
pub struct Tls {
    pub certificate: Vec<u8>,
    pub key: Vec<u8>,
    /// Whose clients are let in.
    pub client_ca: Vec<u8>,
}

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("the server's certificate cannot be read")]
    Certificate(#[source] pem::Error),
    #[error("the server's key cannot be read")]
    Key(#[source] pem::Error),
    #[error("the certificate of the clients' authority cannot be read")]
    ClientCa(#[source] pem::Error),
    #[error("the clients' authority cannot be trusted")]
    Trust(#[source] rustls::Error),
    #[error("the clients' authority cannot verify anybody")]
    Verifier(#[source] VerifierBuilderError),
    #[error("the key and the certificate do not belong together")]
    Pair(#[source] rustls::Error),
    #[error("no wrong certificate can be made")]
    Impostor(#[source] rcgen::Error),
}

/// How connections become encrypted.
#[derive(Clone)]
pub(super) struct Handshake {
    right: TlsAcceptor,
    wrong: TlsAcceptor,
}

// === impl Handshake ===

impl Handshake {
    pub(super) fn new(tls: &Tls) -> Result<Self, TlsError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let chain = CertificateDer::pem_slice_iter(&tls.certificate);
        let chain = chain.collect::<Result<Vec<_>, _>>().map_err(TlsError::Certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&tls.key).map_err(TlsError::Key)?;
        let roots = Arc::new(roots(&tls.client_ca)?);
        let right = acceptor(&provider, &roots, chain, key)?;
        let impostor = rcgen::generate_simple_self_signed([IMPOSTOR.to_owned()]);
        let impostor = impostor.map_err(TlsError::Impostor)?;
        let key = PrivateKeyDer::try_from(impostor.signing_key.serialize_der());
        let key = key.expect("a key that was just written can be read");
        let wrong = acceptor(&provider, &roots, vec![impostor.cert.into()], key)?;
        Ok(Self { right, wrong })
    }

    pub(super) async fn accept(
        &self,
        stream: TcpStream,
        is_wrong: bool,
    ) -> io::Result<TlsStream<TcpStream>> {
        let acceptor = if is_wrong { &self.wrong } else { &self.right };
        timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await?
    }
}

fn roots(pem: &[u8]) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(TlsError::ClientCa)?;
        roots.add(certificate).map_err(TlsError::Trust)?;
    }
    Ok(roots)
}

fn acceptor(
    provider: &Arc<CryptoProvider>,
    roots: &Arc<RootCertStore>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<TlsAcceptor, TlsError> {
    let clients =
        WebPkiClientVerifier::builder_with_provider(Arc::clone(roots), Arc::clone(provider))
            .build()
            .map_err(TlsError::Verifier)?;
    let mut config = ServerConfig::builder_with_provider(Arc::clone(provider))
        .with_safe_default_protocol_versions()
        .expect("the provider knows the usual versions")
        .with_client_cert_verifier(clients)
        .with_single_cert(chain, key)
        .map_err(TlsError::Pair)?;
    config.alpn_protocols = vec![HTTP2.to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

// === impl Tls ===

impl fmt::Debug for Tls {
    /// The key is kept out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}
