//! Which client certificates are accepted, and whom they name.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConnection,
    SignatureScheme,
};
use x509_parser::parse_x509_certificate;

use super::{Error, Provider};
use crate::auth::PeerIdentity;
use crate::options::Tls;

type Verifier = Arc<dyn ClientCertVerifier>;

/// Asks, beyond a valid chain, for one common name.
#[derive(Debug)]
struct OnlyCommonName {
    allowed: String,
    chain: Verifier,
}

pub(super) fn verifier(options: &Tls, provider: &Provider) -> Result<Verifier, Error> {
    let Some(path) = &options.trusted_ca_file else {
        let asks = options.requires_client_cert || options.allowed_cn.is_some();
        return if asks {
            Err(Error::NoTrustedCa)
        } else {
            Ok(WebPkiClientVerifier::no_client_auth())
        };
    };
    let roots = Arc::new(trusted(path)?);
    let mut builder = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(provider));
    if !options.requires_client_cert {
        builder = builder.allow_unauthenticated();
    }
    let chain = builder.build().map_err(|source| Error::Verifier { path: path.clone(), source })?;
    Ok(match &options.allowed_cn {
        Some(allowed) => Arc::new(OnlyCommonName { allowed: allowed.clone(), chain }),
        None => chain,
    })
}

/// Whom a client's verified certificate names.
pub(super) fn identity(session: &ServerConnection) -> Option<PeerIdentity> {
    let leaf = session.peer_certificates()?.first()?;
    common_name(leaf).map(|common_name| PeerIdentity { common_name })
}

/// The subject's common name, if the certificate has one in readable form.
fn common_name(certificate: &CertificateDer<'_>) -> Option<Arc<str>> {
    let (_, parsed) = parse_x509_certificate(certificate).ok()?;
    let name = parsed.subject().iter_common_name().next()?.as_str().ok()?;
    (!name.is_empty()).then(|| name.into())
}

fn trusted(path: &Path) -> Result<RootCertStore, Error> {
    let read = |source| Error::ReadTrusted { path: path.to_owned(), source };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(read)? {
        roots
            .add(certificate.map_err(read)?)
            .map_err(|source| Error::Trust { path: path.to_owned(), source })?;
    }
    Ok(roots)
}

// === impl OnlyCommonName ===

impl ClientCertVerifier for OnlyCommonName {
    fn offer_client_auth(&self) -> bool {
        self.chain.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.chain.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.chain.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let verified = self.chain.verify_client_cert(end_entity, intermediates, now)?;
        if common_name(end_entity).as_deref() == Some(&self.allowed) {
            Ok(verified)
        } else {
            Err(CertificateError::ApplicationVerificationFailure.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.chain.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.chain.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chain.supported_verify_schemes()
    }
}
