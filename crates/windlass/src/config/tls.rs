//! How the client listeners prove who they are, and whom they let in.

use std::{
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use store::Tls;

use super::{Error, Settings, urls::Url};

/// As etcd counts them.
const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

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
        let is_auto = settings.is_on("auto-tls")?;
        match files {
            (Some(cert), Some(key)) => {
                let tls = with_files(settings, cert.into(), key.into())?;
                let warnings = is_auto
                    .then(|| "--auto-tls is ignored: certificate files are given".to_owned());
                Ok(Self { tls: Some(tls), warnings: Vec::from_iter(warnings), self_signed: None })
            }
            (None, None) if is_auto => Self::self_signed(settings, data_dir, urls),
            (None, None) => Ok(Self::default()),
            _ => Err(Error::Contradiction {
                problem: "--cert-file and --key-file must be given together".into(),
                hint: "give both, or neither",
            }),
        }
    }

    /// The files do not exist before [`SelfSigned::ensure`].
    fn self_signed(settings: &Settings, data_dir: &Path, urls: &[Url]) -> Result<Self, Error> {
        let folder = data_dir.join("fixtures").join("client");
        let tls = with_files(settings, folder.join("cert.pem"), folder.join("key.pem"))?;
        let years: u32 = settings.bounded("self-signed-cert-validity", "a number of years")?;
        let hosts = urls.iter().filter_map(Url::host).map(str::to_owned).collect();
        let self_signed = SelfSigned { folder, hosts, validity: YEAR * years };
        Ok(Self { tls: Some(tls), self_signed: Some(self_signed), warnings: Vec::new() })
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

fn with_files(settings: &Settings, cert_file: PathBuf, key_file: PathBuf) -> Result<Tls, Error> {
    let trusted_ca_file = settings.given("trusted-ca-file").map(PathBuf::from);
    if settings.is_on("client-cert-auth")? && trusted_ca_file.is_none() {
        return Err(Error::Contradiction {
            problem: "--client-cert-auth needs --trusted-ca-file".into(),
            hint: "name the PEM file of the authority that signs client certificates",
        });
    }
    let allowed_cn = settings.given("client-cert-allowed-cn").map(str::to_owned);
    if allowed_cn.as_ref().is_some_and(|names| names.contains(',')) {
        return Err(settings.bad_value("client-cert-allowed-cn", "a single common name"));
    }
    // As in etcd, naming an authority is asking for certificates.
    let requires_client_cert = trusted_ca_file.is_some();
    Ok(Tls { cert_file, key_file, trusted_ca_file, requires_client_cert, allowed_cn })
}
