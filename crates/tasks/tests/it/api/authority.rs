//! Certificates for tests: an authority and what it signs.

use std::fs;
use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tasks::store::Tls;
use tempfile::TempDir;

pub(crate) struct Authority {
    folder: TempDir,
    issuer: Issuer<'static, KeyPair>,
}

// === impl Authority ===

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let folder = tempfile::tempdir().expect("a folder");
        let certificate = params.self_signed(&key).expect("a certificate");
        fs::write(folder.path().join("ca.crt"), certificate.pem()).expect("a file");
        Self { folder, issuer: Issuer::new(params, key) }
    }

    /// Signs a certificate for this machine, known by `name`.
    pub(crate) fn sign(&self, name: &str) -> Tls {
        let hosts = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(hosts).expect("hosts");
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        fs::write(self.path(&format!("{name}.crt")), certificate.pem()).expect("a file");
        fs::write(self.path(&format!("{name}.key")), key.serialize_pem()).expect("a file");
        Tls {
            ca_file: self.path("ca.crt"),
            cert_file: self.path(&format!("{name}.crt")),
            key_file: self.path(&format!("{name}.key")),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// The side of a listener: whoever shows a certificate of the authority is known by it.
pub(crate) fn listener(identity: &Tls) -> store::Tls {
    store::Tls {
        trusted_ca_file: Some(identity.ca_file.clone()),
        names_voluntary_clients: true,
        ..store::Tls::new(identity.cert_file.clone(), identity.key_file.clone())
    }
}
