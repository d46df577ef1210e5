//! How the members of a shared journal reach each other. They believe each other whom they act for, so
//! nobody else may reach them.

use std::path::PathBuf;

use store::{Address, Listener, PeerTls, Tls};

use super::{
    Error, Settings,
    urls::{self, Url},
};

#[derive(Debug, Default)]
pub(super) struct Peers {
    pub(super) listeners: Vec<Listener>,
    pub(super) tls: Option<PeerTls>,
}

// === impl Peers ===

impl Peers {
    pub(super) fn of(settings: &Settings) -> Result<Self, Error> {
        let tls = tls(settings)?;
        let places = urls::to_bind(settings, "listen-peer-urls")?;
        let listeners =
            places.into_iter().map(|(url, address)| listener(&url, address, tls.as_ref()));
        Ok(Self { listeners: listeners.collect::<Result<_, _>>()?, tls })
    }
}

fn tls(settings: &Settings) -> Result<Option<PeerTls>, Error> {
    let file = |name| settings.given(name).map(PathBuf::from);
    match (file("peer-cert-file"), file("peer-key-file"), file("peer-trusted-ca-file")) {
        (None, None, None) => Ok(None),
        (Some(cert_file), Some(key_file), Some(trusted_ca_file)) => {
            Ok(Some(PeerTls { cert_file, key_file, trusted_ca_file }))
        }
        _ => Err(Error::Contradiction {
            problem: "--peer-cert-file, --peer-key-file and --peer-trusted-ca-file must be given \
                      together"
                .into(),
            hint: "give all three, or none",
        }),
    }
}

fn listener(url: &Url, address: Address, tls: Option<&PeerTls>) -> Result<Listener, Error> {
    match (url.is_secure(), tls) {
        (true, None) => Err(Error::Contradiction {
            problem: format!("{url} needs a certificate"),
            hint: "give --peer-cert-file, --peer-key-file and --peer-trusted-ca-file",
        }),
        (true, Some(files)) => {
            let tls = Tls {
                trusted_ca_file: Some(files.trusted_ca_file.clone()),
                requires_client_cert: true,
                ..Tls::new(files.cert_file.clone(), files.key_file.clone())
            };
            Ok(Listener { address, tls: Some(tls) })
        }
        (false, _) if !is_of_this_machine(&address) => Err(Error::Contradiction {
            problem: format!("{url} would let everyone who reaches it act as anybody"),
            hint: "let members meet by https, with --peer-cert-file, --peer-key-file and \
                   --peer-trusted-ca-file",
        }),
        (false, _) => Ok(Listener { address, tls: None }),
    }
}

fn is_of_this_machine(address: &Address) -> bool {
    match address {
        Address::Tcp(address) => address.ip().is_loopback(),
        Address::Unix(_) => true,
    }
}
