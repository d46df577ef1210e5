//! How the nodes prove who they are, and this process to them.

use std::{path::PathBuf, sync::Arc};

use ignite_client::Tls;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};

use crate::{Error, Options};

/// Files in PEM form, read when a journal is opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// Who may have signed the certificates of the nodes.
    pub authorities: PathBuf,
    /// What this process shows to nodes that ask for it.
    pub own: Option<OwnFiles>,
    /// The name in the nodes' certificates, where it is not the host of their addresses.
    pub server_name: Option<ServerName<'static>>,
}

/// A certificate, and the key that belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

// === impl Options ===

impl Options {
    /// The same with the certificates read, if it names any.
    pub(crate) fn with_certificates(mut self) -> Result<Self, Error> {
        if let Some(files) = &self.tls {
            self.client.tls = Some(files.read()?);
        }
        Ok(self)
    }
}

// === impl TlsFiles ===

impl TlsFiles {
    fn read(&self) -> Result<Tls, Error> {
        let bad = |source| Error::Certificates { source };
        let mut roots = RootCertStore::empty();
        for authority in certificates(&self.authorities)? {
            roots.add(authority).map_err(bad)?;
        }
        let config = ClientConfig::builder().with_root_certificates(roots);
        let config = match &self.own {
            None => config.with_no_client_auth(),
            Some(OwnFiles { certificate, key }) => {
                let read = PrivateKeyDer::from_pem_file(key);
                let key = read.map_err(|source| Error::Pem { path: key.clone(), source })?;
                config.with_client_auth_cert(certificates(certificate)?, key).map_err(bad)?
            }
        };
        Ok(Tls { config: Arc::new(config), server_name: self.server_name.clone() })
    }
}

fn certificates(path: &PathBuf) -> Result<Vec<CertificateDer<'static>>, Error> {
    let failed = |source| Error::Pem { path: path.clone(), source };
    let read = CertificateDer::pem_file_iter(path).map_err(failed)?;
    let all: Vec<_> = read.collect::<Result<_, _>>().map_err(failed)?;
    if all.is_empty() {
        return Err(failed(rustls::pki_types::pem::Error::NoItemsFound));
    }
    Ok(all)
}
