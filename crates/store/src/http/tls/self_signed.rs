//! A certificate for those who want encryption and have no CA. Writes the pair once into the
//! folder it is given and finds it there again; the only files the edge writes.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rcgen::{CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair};

use crate::options::Tls;

const CERTIFICATE_FILE: &str = "cert.pem";
const KEY_FILE: &str = "key.pem";
/// Only the owner reads a private key.
const KEY_MODE: u32 = 0o600;
/// The folder may be the first that is made of those that will hold a journal.
const FOLDER_MODE: u32 = 0o700;
const ORGANIZATION: &str = "windlass";

/// What a self-signed certificate says.
pub struct SelfSigned<'a> {
    /// Where certificate and key are kept.
    pub folder: &'a Path,
    /// Names and addresses that clients connect to.
    pub hosts: Vec<String>,
    pub now: SystemTime,
    pub validity: Duration,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot create the certificate folder {}", path.display())]
    CreateFolder {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot generate a self-signed certificate")]
    Generate(#[from] rcgen::Error),
    #[error("cannot write {}", path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

// === impl SelfSigned ===

impl SelfSigned<'_> {
    /// The pair in the folder, made if one of its files is missing.
    pub fn ensure(self) -> Result<Tls, Error> {
        let (certificate, key) = (self.folder.join(CERTIFICATE_FILE), self.folder.join(KEY_FILE));
        if !(certificate.exists() && key.exists()) {
            self.write(&certificate, &key)?;
        }
        Ok(Tls::new(certificate, key))
    }

    fn write(self, certificate: &Path, key: &Path) -> Result<(), Error> {
        DirBuilder::new()
            .recursive(true)
            .mode(FOLDER_MODE)
            .create(self.folder)
            .map_err(|source| Error::CreateFolder { path: self.folder.to_owned(), source })?;
        let pair = KeyPair::generate()?;
        let signed = self.params()?.self_signed(&pair)?;
        // The certificate comes last: a folder with one is a folder with both.
        write_secret(key, &pair.serialize_pem())
            .and_then(|()| fs::write(certificate, signed.pem()).map_err(|e| (certificate, e)))
            .map_err(|(path, source)| Error::Write { path: path.to_owned(), source })
    }

    fn params(self) -> Result<CertificateParams, rcgen::Error> {
        let mut params = CertificateParams::new(self.hosts)?;
        params.not_before = self.now.into();
        params.not_after = (self.now + self.validity).into();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, ORGANIZATION);
        Ok(params)
    }
}

fn write_secret<'a>(path: &'a Path, text: &str) -> Result<(), (&'a Path, io::Error)> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(KEY_MODE)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| (path, error))
}
