//! Certificates for tests: an authority and what it signs.

use autoscaler::provider::grpc;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use simcloud::server;

pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: Vec<u8>,
}

// === impl Authority ===

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate").pem().into_bytes();
        Self { issuer: Issuer::new(params, key), certificate }
    }

    pub(crate) fn server(&self) -> server::Tls {
        let (certificate, key) = self.sign();
        server::Tls { certificate, key, client_ca: self.certificate.clone() }
    }

    /// A client of this authority that trusts another one, or the same.
    pub(crate) fn client_trusting(&self, other: &Self) -> grpc::Tls {
        let (certificate, key) = self.sign();
        grpc::Tls { ca: other.certificate.clone(), certificate, key }
    }

    fn sign(&self) -> (Vec<u8>, Vec<u8>) {
        let params = CertificateParams::new(["127.0.0.1".to_owned()]).expect("a host");
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        (certificate.pem().into_bytes(), key.serialize_pem().into_bytes())
    }
}
