//! Where the journal is, in one line: `ignite://HOST:PORT[,HOST:PORT…][?rest=…&schema=…]`.

use std::path::PathBuf;

use ignite_client::Credentials;
use rustls::pki_types::ServerName;

use crate::{Options, OwnFiles, TlsFiles, layout::check_schema, settings::ENCRYPTED};

/// What such a URL begins with.
pub const SCHEME: &str = "ignite";
/// Where nodes tell their settings, unless they were told to use another port.
const REST_PORT: u16 = 10_300;
const REST_PORT_ENCRYPTED: u16 = 10_400;

/// Why a URL names no journal.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    #[error("it does not begin with `{SCHEME}://`")]
    Scheme,
    #[error("`{0}` is no `HOST:PORT`")]
    Address(String),
    #[error("a user needs a password: `USER:PASSWORD@`")]
    Password,
    #[error("`{0}` is not one of `rest=`, `schema=`, `ca=`, `cert=`, `key=` and `name=`")]
    Parameter(String),
    #[error("`{0}` needs the authority that signed the nodes' certificates: `ca=FILE`")]
    Authority(&'static str),
    #[error("`cert=FILE` and `key=FILE` need each other")]
    Half,
    #[error("`{0}` can be no name in a certificate")]
    Name(String),
    #[error("`{0}` cannot name a schema: capitals, digits and `_` can, beginning with a capital")]
    Schema(String),
}

// === impl Options ===

impl Options {
    /// The journal that a URL names: `ignite://[USER:PASSWORD@]HOST:PORT[,HOST:PORT…]`, and behind a
    /// `?` perhaps, with `&` between them:
    ///
    /// - `rest=HOST:PORT[,…]`, behind `https://` where it speaks TLS: where nodes tell their settings,
    ///   port 10300 of the same hosts unless given, or 10400 with TLS;
    /// - `schema=NAME`;
    /// - `ca=FILE`, for nodes that speak TLS; with it `cert=FILE` and `key=FILE` for those that ask for
    ///   them, and `name=NAME` where certificates have another name than the host.
    ///
    /// # Errors
    ///
    /// If it is none. The error does not repeat a password.
    pub fn from_url(url: &str) -> Result<Self, UrlError> {
        let rest = url.strip_prefix(SCHEME).and_then(|rest| rest.strip_prefix("://"));
        let rest = rest.ok_or(UrlError::Scheme)?;
        let (place, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let (credentials, hosts) = match place.rsplit_once('@') {
            Some((user, hosts)) => (Some(credentials(user)?), hosts),
            None => (None, place),
        };
        let addresses = addresses(hosts.trim_end_matches('/'))?;
        let mut client = ignite_client::Options::new(addresses.clone());
        client.credentials = credentials;
        let mut options = Self::new(client, Vec::new());
        let mut files = Files::default();
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            options.set(parameter, &mut files)?;
        }
        options.tls = files.check()?;
        if options.rest.is_empty() {
            options.rest = default_rest(&addresses, options.tls.is_some());
        }
        if options.tls.is_none() && options.rest.iter().any(|it| it.starts_with(ENCRYPTED)) {
            return Err(UrlError::Authority(ENCRYPTED));
        }
        Ok(options)
    }

    fn set(&mut self, parameter: &str, files: &mut Files) -> Result<(), UrlError> {
        match parameter.split_once('=') {
            Some(("rest", value)) => self.rest = addresses(value)?,
            Some(("schema", value)) => {
                check_schema(value).map_err(|_wrong| UrlError::Schema(value.to_owned()))?;
                value.clone_into(&mut self.schema);
            }
            Some(("ca", value)) => files.ca = Some(value.into()),
            Some(("cert", value)) => files.cert = Some(value.into()),
            Some(("key", value)) => files.key = Some(value.into()),
            Some(("name", value)) => {
                let name = ServerName::try_from(value.to_owned());
                files.name = Some(name.map_err(|_wrong| UrlError::Name(value.to_owned()))?);
            }
            _ => return Err(UrlError::Parameter(parameter.to_owned())),
        }
        Ok(())
    }
}

/// What was said of certificates, in whatever order.
#[derive(Default)]
struct Files {
    ca: Option<PathBuf>,
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
    name: Option<ServerName<'static>>,
}

// === impl Files ===

impl Files {
    fn check(self) -> Result<Option<TlsFiles>, UrlError> {
        let own = match (self.cert, self.key) {
            (None, None) => None,
            (Some(certificate), Some(key)) => Some(OwnFiles { certificate, key }),
            _ => return Err(UrlError::Half),
        };
        match self.ca {
            Some(authorities) => Ok(Some(TlsFiles { authorities, own, server_name: self.name })),
            None if own.is_some() => Err(UrlError::Authority("cert=")),
            None if self.name.is_some() => Err(UrlError::Authority("name=")),
            None => Ok(None),
        }
    }
}

fn credentials(text: &str) -> Result<Credentials, UrlError> {
    let (user, password) = text.split_once(':').ok_or(UrlError::Password)?;
    Ok(Credentials { user: user.to_owned(), password: password.to_owned() })
}

fn addresses(list: &str) -> Result<Vec<String>, UrlError> {
    let check = |address: &str| match address.trim_start_matches(ENCRYPTED).rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => {
            Ok(address.to_owned())
        }
        _ => Err(UrlError::Address(address.to_owned())),
    };
    list.split(',').map(check).collect()
}

/// Each host once.
fn default_rest(addresses: &[String], is_encrypted: bool) -> Vec<String> {
    let mut hosts: Vec<&str> = Vec::new();
    for (host, _port) in addresses.iter().filter_map(|address| address.rsplit_once(':')) {
        if !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    let of = |host| match is_encrypted {
        true => format!("{ENCRYPTED}{host}:{REST_PORT_ENCRYPTED}"),
        false => format!("{host}:{REST_PORT}"),
    };
    hosts.into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_nodes_and_tables() {
        let options = Options::from_url("ignite://a:1,[::1]:2").unwrap();
        assert_eq!(options.client.addresses, ["a:1", "[::1]:2"]);
        assert_eq!(options.rest, ["a:10300", "[::1]:10300"]);
        assert_eq!(options.schema, "WINDLASS");
        let options = Options::from_url("ignite://a:1,b:1,a:2").unwrap();
        assert_eq!(options.rest, ["a:10300", "b:10300"], "each host counts once");
        let options = Options::from_url("ignite://a:1,a:2/?rest=a:3,a:4&schema=W2").unwrap();
        assert_eq!((options.rest, options.schema), (vec!["a:3".into(), "a:4".into()], "W2".into()));
    }

    #[test]
    fn a_user_comes_with_a_password() {
        let options = Options::from_url("ignite://me:a:b@c@host:1").unwrap();
        let credentials = options.client.credentials.unwrap();
        assert_eq!((&*credentials.user, &*credentials.password), ("me", "a:b@c"));
        assert_eq!(Options::from_url("ignite://me@host:1").unwrap_err(), UrlError::Password);
    }

    #[test]
    fn an_authority_makes_it_tls() {
        let options = Options::from_url("ignite://a:1,b:1?ca=/ca&cert=/c&key=/k&name=grid");
        let options = options.unwrap();
        assert_eq!(options.rest, ["https://a:10400", "https://b:10400"]);
        let tls = options.tls.unwrap();
        assert_eq!(tls.authorities, PathBuf::from("/ca"));
        let own = OwnFiles { certificate: "/c".into(), key: "/k".into() };
        assert_eq!((tls.own, tls.server_name), (Some(own), Some("grid".try_into().unwrap())));
        let options = Options::from_url("ignite://a:1?ca=/ca&rest=a:2").unwrap();
        assert_eq!(options.rest, ["a:2"]);
        for wrong in ["cert=/c&key=/k", "name=a", "rest=https://a:1", "ca=/ca&cert=/c"] {
            let told = Options::from_url(&format!("ignite://a:1?{wrong}")).unwrap_err();
            assert!(matches!(told, UrlError::Authority(_) | UrlError::Half), "{wrong}: {told}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        let check = |url: &str| Options::from_url(url).unwrap_err().to_string();
        assert_eq!(check("http://a:1"), "it does not begin with `ignite://`");
        assert_eq!(check("ignite://"), "`` is no `HOST:PORT`");
        assert_eq!(check("ignite://a"), "`a` is no `HOST:PORT`");
        assert_eq!(check("ignite://a:1,:2"), "`:2` is no `HOST:PORT`");
        assert!(check("ignite://a:1?shema=A").starts_with("`shema=A` is not one of `rest=`, "));
        assert!(check("ignite://a:1?schema=a").contains("capitals"));
    }
}
