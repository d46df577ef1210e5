//! Certificates that are good no more, by a list that is read again when its file changes. Owns the
//! list in use. Without a readable list nobody is let in: it may name whoever knocks.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
use rustls::RootCertStore;
use rustls::pki_types::CertificateRevocationListDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::WebPkiClientVerifier;

use super::client::Verifier;
use super::{Error, Provider, modified};

const PEM: &[u8] = b"-----BEGIN";

#[derive(Debug)]
pub(super) struct Revoked {
    path: PathBuf,
    roots: Arc<RootCertStore>,
    provider: Provider,
    current: Mutex<Loaded>,
}

#[derive(Debug)]
struct Loaded {
    verifier: Verifier,
    changed: SystemTime,
}

// === impl Revoked ===

impl Revoked {
    pub(super) fn load(
        path: &Path,
        roots: Arc<RootCertStore>,
        provider: Provider,
    ) -> Result<Self, Error> {
        let current = Mutex::new(read(path, &roots, &provider)?);
        Ok(Self { path: path.to_owned(), roots, provider, current })
    }

    /// Verifies chains by what the file says now.
    pub(super) fn newest(&self) -> Result<Verifier, Error> {
        let changed = modified(&self.path)?;
        let mut current = self.current.lock();
        if current.changed != changed {
            *current = read(&self.path, &self.roots, &self.provider)?;
            tracing::info!(path = %self.path.display(), "revocation list read again");
        }
        Ok(Arc::clone(&current.verifier))
    }
}

fn read(path: &Path, roots: &Arc<RootCertStore>, provider: &Provider) -> Result<Loaded, Error> {
    // Taken before reading: a change while reading is then seen by the next handshake.
    let changed = modified(path)?;
    let lists = decode(path)?;
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::clone(roots), Arc::clone(provider))
            .with_crls(lists)
            // A list of one authority says nothing about what another one signed.
            .allow_unknown_revocation_status()
            .build()
            .map_err(|source| Error::Revoked { path: path.to_owned(), source })?;
    Ok(Loaded { verifier, changed })
}

fn decode(path: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, Error> {
    let bytes = std::fs::read(path)
        .map_err(|source| Error::ReadRevoked { path: path.to_owned(), source })?;
    if !bytes.starts_with(PEM) {
        return Ok(vec![bytes.into()]);
    }
    let lists: Vec<_> = CertificateRevocationListDer::pem_slice_iter(&bytes)
        .collect::<Result<_, _>>()
        .map_err(|source| Error::DecodeRevoked { path: path.to_owned(), source })?;
    if lists.is_empty() {
        return Err(Error::NoRevocationList { path: path.to_owned() });
    }
    Ok(lists)
}
