//! Which TLS is spoken: the versions, and the cipher suites of TLS 1.2.

use rustls::SupportedProtocolVersion;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::version::{TLS12, TLS13};

use crate::options::{Tls, TlsVersions};

pub(super) fn versions(options: &Tls) -> Vec<&'static SupportedProtocolVersion> {
    match options.versions {
        TlsVersions::Tls12And13 => vec![&TLS13, &TLS12],
        TlsVersions::OnlyTls12 => vec![&TLS12],
        TlsVersions::OnlyTls13 => vec![&TLS13],
    }
}

pub(super) fn provider(options: &Tls) -> CryptoProvider {
    let mut provider = aws_lc_rs::default_provider();
    if !options.tls12_suites.is_empty() {
        provider.cipher_suites.retain(|suite| {
            suite.tls13().is_some() || options.tls12_suites.contains(&suite.suite())
        });
    }
    provider
}
