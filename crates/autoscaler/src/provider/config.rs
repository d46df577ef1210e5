//! The file that says where the provider is. Reads text; the files it names are the binary's to read.

use std::path::PathBuf;
use std::time::Duration;

use jiff::SignedDuration;
use serde::Deserialize;

/// How long an answer may take, unless the file says otherwise.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(5);

/// A longer wait for one answer would outlast many iterations.
pub const TIMEOUT_MAX: Duration = Duration::from_mins(10);

/// Where the provider is and how it is spoken to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Host and port.
    pub address: String,
    /// Without: in plain text.
    pub tls: Option<TlsFiles>,
    pub timeouts: Timeouts,
}

/// Files with certificates and keys in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// Whom we trust.
    pub ca: PathBuf,
    /// Who we are.
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// How long the answer to one call may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    pub read: Duration,
    pub mutate: Duration,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the provider's configuration is not as it should be")]
    Syntax(#[source] serde_saphyr::Error),
    #[error("`address` is missing; write the provider's host and port")]
    NoAddress,
    #[error("`{key}` is missing; `cert`, `key` and `cacert` are given together or not at all")]
    IncompleteTls { key: &'static str },
    #[error("`{key}` is {value:#}; a timeout lies between 0 s and {} s", TIMEOUT_MAX.as_secs())]
    Timeout { key: &'static str, value: SignedDuration },
}

/// As it is written. An empty text is as good as none.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    address: String,
    #[serde(default)]
    key: PathBuf,
    #[serde(default)]
    cert: PathBuf,
    #[serde(default)]
    cacert: PathBuf,
    grpc_timeout: Option<SignedDuration>,
    read_timeout: Option<SignedDuration>,
    mutate_timeout: Option<SignedDuration>,
}

// === impl Config ===

impl Config {
    /// The configuration in YAML. A key that is not known is an error that names it.
    pub fn parse(yaml: &str) -> Result<Self, Error> {
        let in_one_line = serde_saphyr::options! { with_snippet: false };
        let written: Written =
            serde_saphyr::from_str_with_options(yaml, in_one_line).map_err(Error::Syntax)?;
        if written.address.is_empty() {
            return Err(Error::NoAddress);
        }
        let both = timeout("grpc_timeout", written.grpc_timeout)?.unwrap_or(TIMEOUT_DEFAULT);
        let timeouts = Timeouts {
            read: timeout("read_timeout", written.read_timeout)?.unwrap_or(both),
            mutate: timeout("mutate_timeout", written.mutate_timeout)?.unwrap_or(both),
        };
        let tls = TlsFiles::of(written.cacert, written.cert, written.key)?;
        Ok(Self { address: written.address, tls, timeouts })
    }
}

fn timeout(key: &'static str, value: Option<SignedDuration>) -> Result<Option<Duration>, Error> {
    let Some(value) = value else { return Ok(None) };
    let accepted = Duration::try_from(value).ok();
    let accepted = accepted.filter(|it| !it.is_zero() && *it <= TIMEOUT_MAX);
    accepted.map(Some).ok_or(Error::Timeout { key, value })
}

// === impl TlsFiles ===

impl TlsFiles {
    fn of(ca: PathBuf, certificate: PathBuf, key: PathBuf) -> Result<Option<Self>, Error> {
        let is_absent = |path: &PathBuf| path.as_os_str().is_empty();
        let absent = [is_absent(&ca), is_absent(&certificate), is_absent(&key)];
        if absent == [true; 3] {
            return Ok(None);
        }
        let mut keys = ["cacert", "cert", "key"].into_iter().zip(absent);
        match keys.find(|(_, is_absent)| *is_absent) {
            Some((key, _)) => Err(Error::IncompleteTls { key }),
            None => Ok(Some(Self { ca, certificate, key })),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    fn refusal(yaml: &str) -> String {
        let error = Config::parse(yaml).unwrap_err();
        let source = error.source().map(ToString::to_string).unwrap_or_default();
        format!("{error}: {source}")
    }

    #[test]
    fn an_address_is_enough() {
        let config = Config::parse("address: cloud:8086").unwrap();
        let timeouts = Timeouts { read: TIMEOUT_DEFAULT, mutate: TIMEOUT_DEFAULT };
        let expected = Config { address: "cloud:8086".to_owned(), tls: None, timeouts };
        assert_eq!(config, expected);
    }

    #[test]
    fn everything_can_be_said() {
        let config = Config::parse(
            "address: cloud:8086\nkey: /k\ncert: /c\ncacert: /ca\n\
             grpc_timeout: 30s\nmutate_timeout: 1m30s",
        );
        let config = config.unwrap();
        let [ca, certificate, key] = ["/ca", "/c", "/k"].map(PathBuf::from);
        assert_eq!(config.tls, Some(TlsFiles { ca, certificate, key }));
        let read = Duration::from_secs(30);
        assert_eq!(config.timeouts, Timeouts { read, mutate: Duration::from_secs(90) });
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (yaml, expected) in [
            ("adress: a:1", "adress"),
            ("address: a:1\ngrpc_timout: 5s", "grpc_timout"),
            ("grpc_timeout: 5s", "`address` is missing"),
            ("address: a:1\ncert: /c\nkey: /k", "`cacert` is missing"),
            ("address: a:1\ncacert: /ca", "`cert` is missing"),
            ("address: a:1\nread_timeout: 0s", "`read_timeout` is 0s"),
            ("address: a:1\nmutate_timeout: -1s", "`mutate_timeout` is"),
            ("address: a:1\ngrpc_timeout: 11m", "`grpc_timeout` is 11m"),
            ("address: a:1\ngrpc_timeout: soon", "line 2"),
        ] {
            let refusal = refusal(yaml);
            assert!(refusal.contains(expected), "{yaml}: {refusal}");
            assert!(!refusal.contains('\n'), "{refusal}");
        }
    }
}
