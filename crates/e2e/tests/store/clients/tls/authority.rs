//! An authority that signs certificates for a test, and what etcdctl is told of them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use e2e::scene::Scene;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

pub(super) struct Authority {
    folder: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, as files.
pub(super) struct Identity {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
}

// === impl Authority ===

impl Authority {
    pub(super) fn new(scene: &Scene, name: &str) -> Result<Self> {
        let folder = scene.folder(name)?;
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().context("make the authority's key")?;
        let certificate = params.self_signed(&key).context("sign the authority")?;
        let authority = Self { folder, issuer: Issuer::new(params, key) };
        write(&authority.certificate(), &certificate.pem())?;
        Ok(authority)
    }

    pub(super) fn certificate(&self) -> PathBuf {
        self.folder.join("authority.crt")
    }

    /// For clients and for a server on loopback; without a name if that is empty.
    pub(super) fn sign(&self, common_name: &str) -> Result<Identity> {
        let mut params = CertificateParams::new(["localhost".to_owned(), "127.0.0.1".to_owned()])
            .context("name the machine")?;
        params.distinguished_name = rcgen::DistinguishedName::new();
        if !common_name.is_empty() {
            params.distinguished_name.push(DnType::CommonName, common_name);
        }
        let key = KeyPair::generate().context("make a key")?;
        let certificate = params.signed_by(&key, &self.issuer).context("sign")?;
        let place = |ending: &str| self.folder.join(format!("{common_name}-.{ending}"));
        let identity = Identity { certificate: place("crt"), key: place("key") };
        write(&identity.certificate, &certificate.pem())?;
        write(&identity.key, &key.serialize_pem())?;
        Ok(identity)
    }

    /// Trusts this authority, and shows nothing.
    pub(super) fn flags(&self) -> Vec<String> {
        vec![format!("--cacert={}", self.certificate().display())]
    }
}

// === impl Identity ===

impl Identity {
    /// Shows this certificate, to a server of that authority.
    pub(super) fn flags(&self, trusted: &Authority) -> Vec<String> {
        let own = [
            format!("--cert={}", self.certificate.display()),
            format!("--key={}", self.key.display()),
        ];
        [trusted.flags(), own.to_vec()].concat()
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("write {}", path.display()))
}
