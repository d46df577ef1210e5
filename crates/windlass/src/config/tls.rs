//! How the client listeners prove who they are, and whom they let in.

mod protocol;

use std::{
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use store::{Admitted, Tls};

use self::protocol::Protocol;
use super::{Error, Settings, urls::Url};

/// As etcd counts them.
const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Settings about the certificates of clients, who show one only if the server does.
const OF_CLIENTS: [&str; 5] = [
    "trusted-ca-file",
    "client-cert-auth",
    "client-crl-file",
    "client-cert-allowed-cn",
    "client-cert-allowed-hostname",
];

/// A certificate to be made before the store starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SelfSigned {
    folder: PathBuf,
    /// Names and addresses it is valid for.
    hosts: Vec<String>,
    validity: Duration,
}

/// The certificates of the client listeners, if any are given.
#[derive(Debug, Default)]
pub(crate) struct ClientTls {
    pub(crate) tls: Option<Tls>,
    pub(crate) self_signed: Option<SelfSigned>,
    pub(crate) warnings: Vec<String>,
}

// === impl ClientTls ===

impl ClientTls {
    pub(crate) fn of(settings: &Settings, data_dir: &Path, urls: &[Url]) -> Result<Self, Error> {
        let files = (settings.given("cert-file"), settings.given("key-file"));
        let protocol = Protocol::of(settings)?;
        let is_auto = settings.is_on("auto-tls")?;
        match files {
            (Some(cert), Some(key)) => {
                let tls = with_files(settings, &protocol, cert.into(), key.into())?;
                let mut warnings = protocol.warnings;
                if is_auto {
                    warnings.push("--auto-tls is ignored: certificate files are given".to_owned());
                }
                Ok(Self { tls: Some(tls), warnings, self_signed: None })
            }
            (None, None) if is_auto => Self::self_signed(settings, protocol, data_dir, urls),
            (None, None) => {
                Ok(Self { warnings: without_certificate(settings).collect(), ..Self::default() })
            }
            _ => Err(Error::Contradiction {
                problem: "--cert-file and --key-file must be given together".into(),
                hint: "give both, or neither",
            }),
        }
    }

    /// The files do not exist before [`SelfSigned::ensure`].
    fn self_signed(
        settings: &Settings,
        protocol: Protocol,
        data_dir: &Path,
        urls: &[Url],
    ) -> Result<Self, Error> {
        let folder = data_dir.join("fixtures").join("client");
        let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
        let tls = with_files(settings, &protocol, cert, key)?;
        let years: u32 = settings.bounded("self-signed-cert-validity", "a number of years")?;
        let hosts = urls.iter().filter_map(Url::host).map(str::to_owned).collect();
        let self_signed = SelfSigned { folder, hosts, validity: YEAR * years };
        Ok(Self { tls: Some(tls), self_signed: Some(self_signed), warnings: protocol.warnings })
    }
}

// === impl SelfSigned ===

impl SelfSigned {
    /// Finds the certificate in its folder, or makes it.
    pub(crate) fn ensure(self, now: SystemTime) -> Result<(), store::http::SelfSignedError> {
        let Self { folder, hosts, validity } = self;
        store::http::SelfSigned { folder: &folder, hosts, now, validity }.ensure().map(drop)
    }
}

/// What tells clients apart is asked for, but nothing is encrypted.
fn without_certificate(settings: &Settings) -> impl Iterator<Item = String> {
    let given = OF_CLIENTS.into_iter().filter(|name| settings.is_set(name));
    given.map(|name| {
        let origin = settings.origin(name);
        format!("{origin} has no effect without --cert-file and --key-file")
    })
}

fn with_files(
    settings: &Settings,
    protocol: &Protocol,
    cert_file: PathBuf,
    key_file: PathBuf,
) -> Result<Tls, Error> {
    let file = |name| settings.given(name).map(PathBuf::from);
    let trusted_ca_file = file("trusted-ca-file");
    let admitted = admitted(settings)?;
    let crl_file = file("client-crl-file");
    let asks =
        settings.is_on("client-cert-auth")? || crl_file.is_some() || admitted != Admitted::Everyone;
    if asks && trusted_ca_file.is_none() {
        return Err(Error::Contradiction {
            problem: "client certificates cannot be checked without --trusted-ca-file".into(),
            hint: "name the PEM file of the authority that signs client certificates",
        });
    }
    Ok(Tls {
        // As in etcd, naming an authority is asking for certificates.
        requires_client_cert: trusted_ca_file.is_some(),
        trusted_ca_file,
        admitted,
        crl_file,
        versions: protocol.versions,
        tls12_suites: protocol.tls12_suites.clone(),
        ..Tls::new(cert_file, key_file)
    })
}

fn admitted(settings: &Settings) -> Result<Admitted, Error> {
    let names = |flag| settings.list(flag).into_iter().map(str::to_owned).collect::<Vec<_>>();
    match (names("client-cert-allowed-cn"), names("client-cert-allowed-hostname")) {
        (common, hosts) if common.is_empty() && hosts.is_empty() => Ok(Admitted::Everyone),
        (common, hosts) if hosts.is_empty() => Ok(Admitted::CommonNames(common)),
        (common, hosts) if common.is_empty() => Ok(Admitted::HostNames(hosts)),
        _ => Err(Error::Contradiction {
            problem:
                "--client-cert-allowed-cn and --client-cert-allowed-hostname exclude each other"
                    .into(),
            hint: "admit clients by common names or by host names",
        }),
    }
}
