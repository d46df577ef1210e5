//! Which TLS is spoken: etcd's names of versions and cipher suites, and what they mean here.

use rustls::CipherSuite;
use store::TlsVersions;

use super::super::{Error, Settings};

const TLS13: &str = "TLS1.3";
const TLS12: &str = "TLS1.2";

/// What `--tls-min-version`, `--tls-max-version` and `--cipher-suites` ask for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Protocol {
    pub(super) versions: TlsVersions,
    pub(super) tls12_suites: Vec<CipherSuite>,
    pub(super) warnings: Vec<String>,
}

/// A name that etcd knows.
enum Named {
    Tls12(CipherSuite),
    /// Fixed, in etcd too.
    Tls13,
    /// Without forward secrecy or with a broken construction, and not spoken here.
    Outdated,
}

// === impl Protocol ===

impl Protocol {
    pub(super) fn of(settings: &Settings) -> Result<Self, Error> {
        let versions = versions(settings)?;
        let names = settings.list("cipher-suites");
        if names.is_empty() {
            return Ok(Self { versions, ..Self::default() });
        }
        if versions == TlsVersions::OnlyTls13 {
            return Err(Error::Contradiction {
                problem: "--cipher-suites has no meaning with TLS 1.3 alone".into(),
                hint: "leave --cipher-suites out: those of TLS 1.3 are fixed",
            });
        }
        let mut protocol = Self { versions, ..Self::default() };
        for name in names {
            match Named::of(name) {
                Some(Named::Tls12(suite)) => protocol.tls12_suites.push(suite),
                Some(Named::Tls13) => {}
                Some(Named::Outdated) => {
                    protocol.warnings.push(format!("--cipher-suites: {name} is not offered"));
                }
                None => return Err(settings.bad_value("cipher-suites", EXPECTED)),
            }
        }
        match protocol.tls12_suites.is_empty() {
            true => Err(settings.bad_value("cipher-suites", EXPECTED)),
            false => Ok(protocol),
        }
    }
}

const EXPECTED: &str = "known names, one of TLS 1.2 that is offered among them: TLS_ECDHE_{ECDSA,RSA}_WITH_\
     {AES_128_GCM_SHA256,AES_256_GCM_SHA384,CHACHA20_POLY1305_SHA256}";

/// An empty version is the lowest, or highest, that is spoken.
fn versions(settings: &Settings) -> Result<TlsVersions, Error> {
    match (settings.text("tls-min-version"), settings.text("tls-max-version")) {
        (TLS13, TLS12) => Err(Error::Contradiction {
            problem: "--tls-min-version is above --tls-max-version".into(),
            hint: "leave one of them out",
        }),
        (TLS13, _) => Ok(TlsVersions::OnlyTls13),
        (_, TLS12) => Ok(TlsVersions::OnlyTls12),
        _ => Ok(TlsVersions::Tls12And13),
    }
}

// === impl Named ===

impl Named {
    #[rustfmt::skip]
    fn of(name: &str) -> Option<Self> {
        use CipherSuite as Suite;
        Some(match name {
            "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256" => Self::Tls12(Suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
            "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384" => Self::Tls12(Suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
            "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"
            | "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305" => Self::Tls12(Suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
            "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256" => Self::Tls12(Suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
            "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384" => Self::Tls12(Suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
            "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"
            | "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305" => Self::Tls12(Suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
            "TLS_AES_128_GCM_SHA256"
            | "TLS_AES_256_GCM_SHA384"
            | "TLS_CHACHA20_POLY1305_SHA256" => Self::Tls13,
            "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA"
            | "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256"
            | "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA"
            | "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA"
            | "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA"
            | "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA"
            | "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256"
            | "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA"
            | "TLS_ECDHE_RSA_WITH_RC4_128_SHA"
            | "TLS_RSA_WITH_3DES_EDE_CBC_SHA"
            | "TLS_RSA_WITH_AES_128_CBC_SHA"
            | "TLS_RSA_WITH_AES_128_CBC_SHA256"
            | "TLS_RSA_WITH_AES_128_GCM_SHA256"
            | "TLS_RSA_WITH_AES_256_CBC_SHA"
            | "TLS_RSA_WITH_AES_256_GCM_SHA384"
            | "TLS_RSA_WITH_RC4_128_SHA" => Self::Outdated,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::config::serve::tests::settings;

    fn check(line: &str, expected: Expect) {
        let actual = match Protocol::of(&settings(line)) {
            Ok(Protocol { versions, tls12_suites, warnings }) => {
                let lines = warnings.iter().map(|warning| format!("\nwarning: {warning}"));
                format!("{versions:?} {tls12_suites:?}{}", lines.collect::<String>())
            }
            Err(error) => format!("error: {error}\nhint: {}", error.hint()),
        };
        expected.assert_eq(&actual);
    }

    #[test]
    fn versions_are_those_between_two_bounds() {
        check("", expect!["Tls12And13 []"]);
        check("--tls-min-version= --tls-max-version TLS1.3", expect!["Tls12And13 []"]);
        check("--tls-min-version TLS1.3", expect!["OnlyTls13 []"]);
        check("--tls-max-version TLS1.2", expect!["OnlyTls12 []"]);
        check(
            "--tls-min-version TLS1.3 --tls-max-version TLS1.2",
            expect![[r#"
                error: --tls-min-version is above --tls-max-version
                hint: leave one of them out"#]],
        );
    }

    #[test]
    fn suites_are_known_by_etcds_names() {
        check(
            "--cipher-suites TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_AES_128_GCM_SHA256",
            expect!["Tls12And13 [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]"],
        );
        check(
            "--cipher-suites TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305,TLS_RSA_WITH_AES_256_GCM_SHA384",
            expect![[r#"
                Tls12And13 [TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256]
                warning: --cipher-suites: TLS_RSA_WITH_AES_256_GCM_SHA384 is not offered"#]],
        );
    }

    #[test]
    fn a_choice_that_leaves_nothing_is_refused() {
        let refused = |line: &str| Protocol::of(&settings(line)).unwrap_err().to_string();
        for suites in ["TLS_RSA_WITH_AES_128_CBC_SHA", "TLS_AES_128_GCM_SHA256", "TLS_NONE"] {
            let words = refused(&format!("--cipher-suites {suites}"));
            assert_eq!(words, format!("--cipher-suites: invalid value `{suites}`"));
        }
        let words = refused(
            "--tls-min-version TLS1.3 --cipher-suites TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        );
        assert_eq!(words, "--cipher-suites has no meaning with TLS 1.3 alone");
    }
}
