//! The URLs etcd's flags take: `http://ip:port`, `https://ip:port`, `unix://path`, `unixs://path`.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use store::Address;

use super::{Error, Settings};

/// A URL of one of the four schemes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Url {
    is_secure: bool,
    place: Place,
    text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Tcp { host: String, port: u16 },
    Unix(PathBuf),
}

// === impl Url ===

impl Url {
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let (scheme, rest) = text.split_once("://").ok_or("the scheme is missing")?;
        let (is_secure, place) = match scheme {
            "http" => (false, tcp(rest)?),
            "https" => (true, tcp(rest)?),
            "unix" => (false, unix(rest)?),
            "unixs" => (true, unix(rest)?),
            _ => return Err("the scheme must be http, https, unix or unixs"),
        };
        Ok(Self { is_secure, place, text: text.to_owned() })
    }

    pub(crate) fn is_secure(&self) -> bool {
        self.is_secure
    }

    /// The host of a TCP address.
    pub(crate) fn host(&self) -> Option<&str> {
        match &self.place {
            Place::Tcp { host, .. } => Some(host),
            Place::Unix(_) => None,
        }
    }

    /// Where to listen. As in etcd, names are not resolved, but for `localhost`.
    fn bind_address(&self) -> Result<Address, &'static str> {
        match &self.place {
            Place::Unix(path) => Ok(Address::Unix(path.clone())),
            Place::Tcp { host, port } if host == "localhost" => {
                Ok(Address::Tcp(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), *port)))
            }
            Place::Tcp { host, port } => host
                .parse::<IpAddr>()
                .map(|ip| Address::Tcp(SocketAddr::new(ip, *port)))
                .map_err(|_not_an_ip| "listening needs an IP address or `localhost`"),
        }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The URLs of a flag, in the order given.
pub(crate) fn of_flag(settings: &Settings, name: &str) -> Result<Vec<Url>, Error> {
    let parse = |text: &str| Url::parse(text).map_err(|problem| bad(settings, name, text, problem));
    settings.list(name).into_iter().map(parse).collect()
}

/// Where the URLs of a flag say to listen.
pub(crate) fn to_bind(settings: &Settings, name: &str) -> Result<Vec<(Url, Address)>, Error> {
    let bind = |url: Url| match url.bind_address() {
        Ok(address) => Ok((url, address)),
        Err(problem) => Err(bad(settings, name, &url.text, problem)),
    };
    of_flag(settings, name)?.into_iter().map(bind).collect()
}

/// URLs told to others, who need to know a host.
pub(crate) fn to_advertise(settings: &Settings, name: &str) -> Result<Vec<String>, Error> {
    let text = |url: Url| match url.host() {
        Some("") => Err(bad(settings, name, &url.text, "the host is missing")),
        _ => Ok(url.text),
    };
    of_flag(settings, name)?.into_iter().map(text).collect()
}

fn bad(settings: &Settings, name: &str, value: &str, problem: &'static str) -> Error {
    Error::BadUrl { origin: settings.origin(name), value: value.to_owned(), problem }
}

fn tcp(rest: &str) -> Result<Place, &'static str> {
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    if authority.contains('/') {
        return Err("the URL must not have a path");
    }
    let (host, port) = authority.rsplit_once(':').ok_or("the port is missing")?;
    let host = match host.strip_prefix('[') {
        Some(bracketed) => bracketed.strip_suffix(']').ok_or("a bracket is missing")?,
        None if host.contains(':') => return Err("an IPv6 address must stand in brackets"),
        None => host,
    };
    let port = port.parse().map_err(|_not_a_port| "the port must be a number up to 65535")?;
    Ok(Place::Tcp { host: host.to_owned(), port })
}

fn unix(rest: &str) -> Result<Place, &'static str> {
    if rest.is_empty() {
        Err("the path of the socket is missing")
    } else {
        Ok(Place::Unix(rest.into()))
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(text: &str, expected: Expect) {
        let actual = Url::parse(text).and_then(|url| {
            let address = url.bind_address()?;
            Ok(format!("{}{address:?}", if url.is_secure() { "TLS on " } else { "" }))
        });
        expected.assert_eq(&actual.unwrap_or_else(|problem| format!("error: {problem}")));
    }

    #[test]
    fn the_four_schemes_are_known() {
        check("http://127.0.0.1:2379", expect!["Tcp(127.0.0.1:2379)"]);
        check("http://localhost:2379/", expect!["Tcp(127.0.0.1:2379)"]);
        check("https://0.0.0.0:0", expect!["TLS on Tcp(0.0.0.0:0)"]);
        check("http://[::1]:2379", expect!["Tcp([::1]:2379)"]);
        check("unix:///run/w.sock", expect![[r#"Unix("/run/w.sock")"#]]);
        check("unix://localhost:23790", expect![[r#"Unix("localhost:23790")"#]]);
        check("unixs://w.sock", expect![[r#"TLS on Unix("w.sock")"#]]);
    }

    #[test]
    fn what_cannot_be_listened_on_is_refused() {
        check("127.0.0.1:2379", expect!["error: the scheme is missing"]);
        check(
            "ftp://127.0.0.1:2379",
            expect!["error: the scheme must be http, https, unix or unixs"],
        );
        check("http://127.0.0.1", expect!["error: the port is missing"]);
        check("http://127.0.0.1:99999", expect!["error: the port must be a number up to 65535"]);
        check("http://127.0.0.1:2379/v3", expect!["error: the URL must not have a path"]);
        check(
            "http://etcd.example:2379",
            expect!["error: listening needs an IP address or `localhost`"],
        );
        check("http://:2379", expect!["error: listening needs an IP address or `localhost`"]);
        check("http://::1:2379", expect!["error: an IPv6 address must stand in brackets"]);
        check("unix://", expect!["error: the path of the socket is missing"]);
    }
}
