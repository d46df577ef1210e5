//! `windlass ca`: the authority of a cluster, and what it signs. Writes only into the folder it is
//! given, never over a file that exists, and keys for their owner alone.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use serde::Serialize;

use super::task::print;
use crate::{
    cli::tasks::{CaCommand, InitArgs, IssueArgs},
    lifecycle,
    report::{self, Exit, Failure, Outcome},
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// An authority outlives many machines.
const AUTHORITY_VALIDITY: Duration = DAY.saturating_mul(3650);
/// Short enough that a lost key is not trusted for ever.
const ISSUED_VALIDITY: Duration = DAY.saturating_mul(90);
/// Clocks of other machines may be behind.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(60 * 60);

const AUTHORITY: &str = "ca";
const ORGANIZATION: &str = "windlass";
/// By these a node is reached on its own machine.
const LOCAL_HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

const FOLDER_MODE: u32 = 0o700;
const KEY_MODE: u32 = 0o600;
const CERTIFICATE_MODE: u32 = 0o644;

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("cannot make the folder {}", path.display())]
    MakeFolder {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} exists", path.display())]
    Exists { path: PathBuf },
    #[error("cannot write {}", path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot read {}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} is not the key of an authority", path.display())]
    AuthorityKey {
        path: PathBuf,
        #[source]
        source: rcgen::Error,
    },
    #[error("{} is not the certificate of an authority", path.display())]
    AuthorityCertificate {
        path: PathBuf,
        #[source]
        source: rcgen::Error,
    },
    #[error("`{name}` cannot be the name of a file")]
    Name { name: String },
    #[error("the names of {name} cannot be written into a certificate")]
    Hosts {
        name: String,
        #[source]
        source: rcgen::Error,
    },
    #[error("no certificate can be made")]
    Sign(#[source] rcgen::Error),
}

/// A certificate and its key, in PEM, and where they lie.
struct Files {
    certificate: PathBuf,
    key: PathBuf,
}

/// The same, as it is printed.
#[derive(Debug, Serialize)]
struct Written {
    certificate: String,
    key: String,
}

/// Whom a certificate is for.
struct Subject {
    name: String,
    hosts: Vec<String>,
    usages: Vec<ExtendedKeyUsagePurpose>,
}

pub(crate) fn run(command: CaCommand) -> Outcome {
    match command {
        CaCommand::Init(arguments) => init(&arguments, lifecycle::wall_clock()),
        CaCommand::Issue(arguments) => issue(arguments, lifecycle::wall_clock()),
    }
}

fn init(arguments: &InitArgs, now: SystemTime) -> Outcome {
    let files = make_authority(&arguments.dir, now)?;
    let written = files.written();
    print(arguments.output, &written, |written| written.certificate.clone())?;
    let key = files.key.display();
    report::words(&format!("give the certificate to everybody; keep {key} on this machine"));
    Ok(())
}

fn issue(arguments: IssueArgs, now: SystemTime) -> Outcome {
    let dir = arguments.dir.clone();
    let output = arguments.output;
    let written = sign(&dir, &Subject::of(arguments), now)?.written();
    print(output, &written, |Written { certificate, key }| format!("{certificate}\n{key}"))
}

fn make_authority(dir: &Path, now: SystemTime) -> Result<Files, Error> {
    let files = Files::of(dir, AUTHORITY);
    files.refuse_existing()?;
    let made = fs::DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(dir);
    made.map_err(|source| Error::MakeFolder { path: dir.to_owned(), source })?;
    let key = KeyPair::generate().map_err(Error::Sign)?;
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.distinguished_name = distinguished("windlass CA");
    valid(&mut params, now, AUTHORITY_VALIDITY);
    let certificate = params.self_signed(&key).map_err(Error::Sign)?;
    files.write(&certificate.pem(), &key)?;
    Ok(files)
}

fn sign(dir: &Path, subject: &Subject, now: SystemTime) -> Result<Files, Error> {
    let name = &subject.name;
    let is_file_name = !name.is_empty() && !name.contains(['/', '\0']) && !name.starts_with('.');
    if !is_file_name || name == AUTHORITY {
        return Err(Error::Name { name: name.clone() });
    }
    let files = Files::of(dir, name);
    files.refuse_existing()?;
    let issuer = read_authority(&Files::of(dir, AUTHORITY))?;
    let key = KeyPair::generate().map_err(Error::Sign)?;
    let mut params = CertificateParams::new(subject.hosts.clone())
        .map_err(|source| Error::Hosts { name: name.clone(), source })?;
    params.distinguished_name = distinguished(name);
    params.extended_key_usages.clone_from(&subject.usages);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.use_authority_key_identifier_extension = true;
    valid(&mut params, now, ISSUED_VALIDITY);
    let certificate = params.signed_by(&key, &issuer).map_err(Error::Sign)?;
    files.write(&certificate.pem(), &key)?;
    Ok(files)
}

fn read_authority(files: &Files) -> Result<Issuer<'static, KeyPair>, Error> {
    let read = |path: &PathBuf| {
        fs::read_to_string(path).map_err(|source| Error::Read { path: path.clone(), source })
    };
    let key = KeyPair::from_pem(&read(&files.key)?)
        .map_err(|source| Error::AuthorityKey { path: files.key.clone(), source })?;
    Issuer::from_ca_cert_pem(&read(&files.certificate)?, key)
        .map_err(|source| Error::AuthorityCertificate { path: files.certificate.clone(), source })
}

fn distinguished(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::OrganizationName, ORGANIZATION);
    distinguished.push(DnType::CommonName, name);
    distinguished
}

fn valid(params: &mut CertificateParams, now: SystemTime, validity: Duration) {
    params.not_before = (now - CLOCK_TOLERANCE).into();
    params.not_after = (now + validity).into();
}

// === impl Subject ===

impl Subject {
    /// A node both serves and asks: other nodes for logs, the store for everything else.
    fn of(arguments: IssueArgs) -> Self {
        match (arguments.node, arguments.client) {
            (Some(name), _) => {
                let mut hosts = arguments.hosts;
                if hosts.is_empty() {
                    hosts = [&*name].into_iter().chain(LOCAL_HOSTS).map(str::to_owned).collect();
                }
                let usages =
                    vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
                Self { name, hosts, usages }
            }
            (None, name) => Self {
                name: name.unwrap_or_default(),
                hosts: Vec::new(),
                usages: vec![ExtendedKeyUsagePurpose::ClientAuth],
            },
        }
    }
}

// === impl Files ===

impl Files {
    fn of(dir: &Path, name: &str) -> Self {
        Self { certificate: dir.join(format!("{name}.crt")), key: dir.join(format!("{name}.key")) }
    }

    fn written(&self) -> Written {
        let Self { certificate, key } = self;
        Written { certificate: certificate.display().to_string(), key: key.display().to_string() }
    }

    fn refuse_existing(&self) -> Result<(), Error> {
        match [&self.certificate, &self.key].into_iter().find(|path| path.exists()) {
            Some(path) => Err(Error::Exists { path: path.clone() }),
            None => Ok(()),
        }
    }

    /// The certificate comes last: where there is one, there is its key.
    fn write(&self, certificate: &str, key: &KeyPair) -> Result<(), Error> {
        write(&self.key, &key.serialize_pem(), KEY_MODE)?;
        write(&self.certificate, certificate, CERTIFICATE_MODE)
    }
}

fn write(path: &Path, text: &str, mode: u32) -> Result<(), Error> {
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|source| Error::Write { path: path.to_owned(), source })
}

// === impl Error ===

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let (exit, hint) = match &error {
            Error::MakeFolder { .. } | Error::Write { .. } => {
                (Exit::No, "check that this user may write there, or choose another --dir")
            }
            Error::Exists { .. } => (
                Exit::No,
                "what is trusted is not written over; move the old files away to renew them",
            ),
            Error::Read { .. } => (Exit::No, "`windlass ca init` makes the authority"),
            Error::AuthorityKey { .. } | Error::AuthorityCertificate { .. } => {
                (Exit::No, "name the folder that `windlass ca init` made with --dir")
            }
            Error::Name { .. } => (Exit::Usage, "choose letters, digits, `-` and `.`"),
            Error::Hosts { .. } => (Exit::Usage, "give names and addresses with --host"),
            Error::Sign(_) => (Exit::No, "is there a source of randomness on this machine?"),
        };
        Self::new(exit, error).with_hint(hint)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use rustls::pki_types::{CertificateDer, pem::PemObject};
    use x509_parser::parse_x509_certificate;

    use super::*;
    use crate::cli::Output;

    fn node(name: &str) -> Subject {
        Subject::of(IssueArgs {
            node: Some(name.to_owned()),
            client: None,
            hosts: Vec::new(),
            dir: PathBuf::new(),
            output: Output::default(),
        })
    }

    #[test]
    fn what_is_issued_is_signed_and_ends_after_90_days() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("ca");
        let now = lifecycle::wall_clock();
        let authority = make_authority(&dir, now).unwrap();
        let files = sign(&dir, &node("node1"), now).unwrap();
        let der = |path| CertificateDer::from_pem_file(path).unwrap();
        let (issued, signer) = (der(&files.certificate), der(&authority.certificate));
        let (_, issued) = parse_x509_certificate(&issued).unwrap();
        let (_, signer) = parse_x509_certificate(&signer).unwrap();
        issued.verify_signature(Some(signer.public_key())).unwrap();
        let seconds = |duration: Duration| i64::try_from(duration.as_secs()).unwrap();
        let validity = issued.validity();
        let length = validity.not_after.timestamp() - validity.not_before.timestamp();
        assert_eq!(length, seconds(ISSUED_VALIDITY + CLOCK_TOLERANCE));
        let usage = issued.extended_key_usage().unwrap().unwrap().value;
        assert!(usage.server_auth && usage.client_auth);
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!([mode(&files.key), mode(&authority.key), mode(&dir)], [0o600, 0o600, 0o700]);
    }

    #[test]
    fn nothing_is_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let now = lifecycle::wall_clock();
        make_authority(folder.path(), now).unwrap();
        assert!(matches!(make_authority(folder.path(), now), Err(Error::Exists { .. })));
        sign(folder.path(), &node("a"), now).unwrap();
        assert!(matches!(sign(folder.path(), &node("a"), now), Err(Error::Exists { .. })));
        for name in ["", "ca", "../a", ".a"] {
            let refused = sign(folder.path(), &node(name), now);
            assert!(matches!(refused, Err(Error::Name { .. })), "{name:?}");
        }
    }

    /// Scripts had to guess where the files were.
    #[test]
    fn what_was_written_can_be_had_as_json() {
        let files = Files::of(Path::new("ca"), "alice");
        let json = report::json(&files.written()).unwrap();
        expect_test::expect![[r#"
            {
              "certificate": "ca/alice.crt",
              "key": "ca/alice.key"
            }"#]]
        .assert_eq(&json);
    }
}
