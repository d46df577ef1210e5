//! Which client certificates are accepted, and whom they name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::client::verify_server_name;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConnection,
    SignatureScheme,
};
use x509_parser::parse_x509_certificate;

use super::revoked::Revoked;
use super::{Error, Provider};
use crate::auth::PeerIdentity;
use crate::options::{Admitted, Tls};

pub(super) type Verifier = Arc<dyn ClientCertVerifier>;

/// Asks, beyond a valid chain, for a certificate that is not revoked and names somebody admitted.
#[derive(Debug)]
struct Clients {
    chain: Verifier,
    revoked: Option<Revoked>,
    admission: Admission,
}

/// The names that are let in, ready to be compared.
#[derive(Debug)]
enum Admission {
    Everyone,
    CommonNames(Vec<String>),
    HostNames(Vec<ServerName<'static>>),
}

pub(super) fn verifier(options: &Tls, provider: &Provider) -> Result<Verifier, Error> {
    let admission = Admission::of(&options.admitted)?;
    let Some(path) = &options.trusted_ca_file else {
        let is_asking = options.requires_client_cert
            || options.crl_file.is_some()
            || options.admitted != Admitted::Everyone;
        return if is_asking {
            Err(Error::NoTrustedCa)
        } else {
            Ok(WebPkiClientVerifier::no_client_auth())
        };
    };
    let roots = Arc::new(trusted(path)?);
    let mut builder =
        WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(provider));
    if !options.requires_client_cert {
        builder = builder.allow_unauthenticated();
    }
    let chain = builder.build().map_err(|source| Error::Verifier { path: path.clone(), source })?;
    let load = |path: &PathBuf| Revoked::load(path, roots, Arc::clone(provider));
    let revoked = options.crl_file.as_ref().map(load).transpose()?;
    Ok(Arc::new(Clients { chain, revoked, admission }))
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

// === impl Admission ===

impl Admission {
    fn of(admitted: &Admitted) -> Result<Self, Error> {
        Ok(match admitted {
            Admitted::Everyone => Self::Everyone,
            Admitted::CommonNames(names) => Self::CommonNames(names.clone()),
            Admitted::HostNames(names) => {
                let parse = |name: &String| match ServerName::try_from(name.clone()) {
                    Ok(parsed) => Ok(parsed),
                    Err(source) => Err(Error::HostName { name: name.clone(), source }),
                };
                Self::HostNames(names.iter().map(parse).collect::<Result<_, _>>()?)
            }
        })
    }

    fn admits(&self, certificate: &CertificateDer<'_>) -> bool {
        match self {
            Self::Everyone => true,
            Self::CommonNames(names) => common_name(certificate)
                .is_some_and(|found| names.iter().any(|name| **name == *found)),
            Self::HostNames(names) => {
                ParsedCertificate::try_from(certificate).is_ok_and(|parsed| {
                    names.iter().any(|name| verify_server_name(&parsed, name).is_ok())
                })
            }
        }
    }
}

// === impl Clients ===

impl Clients {
    /// Verifies chains, by the revocation list of this moment if there is one.
    fn chain(&self) -> Result<Verifier, rustls::Error> {
        let Some(revoked) = &self.revoked else { return Ok(Arc::clone(&self.chain)) };
        revoked.newest().map_err(|error| {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(error, "refusing a client: its certificate may have been revoked");
            CertificateError::UnknownRevocationStatus.into()
        })
    }
}

impl ClientCertVerifier for Clients {
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
        let verified = self.chain()?.verify_client_cert(end_entity, intermediates, now)?;
        if self.admission.admits(end_entity) {
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
