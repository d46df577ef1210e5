//! Certificates by which a node and its clients know each other, as Java and as everybody else reads
//! them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Java wants a password for every file; these are gone with the test.
const PASSWORD: &str = "changeit";

/// What clients are given.
#[derive(Clone, Debug)]
pub struct Guard {
    /// The nodes' certificate, which nobody else signed.
    pub authority: PathBuf,
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// The nodes' certificate with its key, and the clients' certificate, for Java.
    key_store: PathBuf,
    trust_store: PathBuf,
}

// === impl Guard ===

impl Guard {
    pub(super) fn make(folder: &Path) -> Result<Self> {
        let file = |name: &str| folder.join(name);
        let guard = Self {
            authority: file("node.pem"),
            certificate: file("client.pem"),
            key: file("client.key"),
            key_store: file("node.p12"),
            trust_store: file("clients.p12"),
        };
        let own = rcgen::generate_simple_self_signed(["client".to_owned()])?;
        fs::write(&guard.certificate, own.cert.pem()).context("write the client's certificate")?;
        fs::write(&guard.key, own.signing_key.serialize_pem()).context("write the client's key")?;
        let path = |path: &Path| path.display().to_string();
        keytool(&[
            ["-genkeypair", "-noprompt"],
            ["-alias", "node"],
            ["-keyalg", "EC"],
            ["-dname", "CN=node"],
            ["-ext", "san=ip:127.0.0.1"],
            ["-keystore", &path(&guard.key_store)],
        ])?;
        keytool(&[
            ["-exportcert", "-rfc"],
            ["-alias", "node"],
            ["-keystore", &path(&guard.key_store)],
            ["-file", &path(&guard.authority)],
        ])?;
        keytool(&[
            ["-importcert", "-noprompt"],
            ["-alias", "client"],
            ["-file", &path(&guard.certificate)],
            ["-keystore", &path(&guard.trust_store)],
        ])?;
        Ok(guard)
    }

    /// As Ignite's settings have it; who connects must show a certificate too.
    pub(super) fn mutual(&self) -> String {
        let trust = store("trustStore", &self.trust_store);
        format!("enabled = true, clientAuth = require, {}, {trust}", self.own())
    }

    /// The nodes' own certificate alone.
    pub(super) fn own(&self) -> String {
        store("keyStore", &self.key_store)
    }
}

fn store(name: &str, path: &Path) -> String {
    let path = path.display();
    format!("{name} {{ type = PKCS12, path = \"{path}\", password = \"{PASSWORD}\" }}")
}

fn keytool(arguments: &[[&str; 2]]) -> Result<()> {
    let done = Command::new("keytool")
        .args(arguments.as_flattened())
        .args(["-storetype", "PKCS12", "-storepass", PASSWORD])
        .output()
        .context("start keytool, which comes with Java")?;
    ensure!(done.status.success(), "keytool: {}", String::from_utf8_lossy(&done.stdout));
    Ok(())
}
