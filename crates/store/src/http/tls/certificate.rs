//! The server's certificate, read again when its files change, so that rotating it needs no
//! restart. Owns the pair in use; never writes a file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::{Error, Provider, modified};
use crate::options::Tls;

#[derive(Debug)]
pub(super) struct Certificate {
    certificate_file: PathBuf,
    key_file: PathBuf,
    provider: Provider,
    current: Mutex<Loaded>,
}

#[derive(Clone, Debug)]
struct Loaded {
    pair: Arc<CertifiedKey>,
    /// When certificate and key last changed.
    changed: (SystemTime, SystemTime),
}

// === impl Certificate ===

impl Certificate {
    pub(super) fn load(options: &Tls, provider: Provider) -> Result<Self, Error> {
        let current = read(&options.cert_file, &options.key_file, &provider)?;
        Ok(Self {
            certificate_file: options.cert_file.clone(),
            key_file: options.key_file.clone(),
            provider,
            current: Mutex::new(current),
        })
    }

    fn newest(&self) -> Result<Arc<CertifiedKey>, Error> {
        let changed = changed(&self.certificate_file, &self.key_file)?;
        let mut current = self.current.lock();
        if current.changed != changed {
            *current = read(&self.certificate_file, &self.key_file, &self.provider)?;
            tracing::info!(path = %self.certificate_file.display(), "certificate read again");
        }
        Ok(Arc::clone(&current.pair))
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        match self.newest() {
            Ok(pair) => Some(pair),
            // Files are replaced one after the other: between the two, the old pair is right.
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(error, "cannot read the changed certificate, serving the old one");
                Some(Arc::clone(&self.current.lock().pair))
            }
        }
    }
}

fn read(certificate: &Path, key: &Path, provider: &Provider) -> Result<Loaded, Error> {
    // Taken before reading: a change while reading is then seen by the next handshake.
    let changed = changed(certificate, key)?;
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|source| Error::ReadCertificate { path: certificate.to_owned(), source })?;
    let secret = PrivateKeyDer::from_pem_file(key)
        .map_err(|source| Error::ReadKey { path: key.to_owned(), source })?;
    let pair = CertifiedKey::from_der(chain, secret, provider).map_err(|source| Error::Pair {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
        source,
    })?;
    Ok(Loaded { pair: Arc::new(pair), changed })
}

fn changed(certificate: &Path, key: &Path) -> Result<(SystemTime, SystemTime), Error> {
    Ok((modified(certificate)?, modified(key)?))
}
