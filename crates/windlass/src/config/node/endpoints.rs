//! Where a shared store is, and whether it may be spoken to like that.

use std::net::IpAddr;

use tonic::transport::Uri;

use super::Error;

/// The endpoints as they are dialled: without a scheme, encrypted if there are certificates for it.
/// Everything a node does passes through its store, the commands of others among it, so what leaves the
/// machine is encrypted.
pub(super) fn of(given: &[String], has_identity: bool) -> Result<Vec<String>, Error> {
    given.iter().map(|endpoint| dialled(endpoint, has_identity)).collect()
}

fn dialled(given: &str, has_identity: bool) -> Result<String, Error> {
    let endpoint = match (given.contains("://"), has_identity) {
        (true, _) => given.to_owned(),
        (false, true) => format!("https://{given}"),
        (false, false) => format!("http://{given}"),
    };
    let uri = endpoint
        .parse::<Uri>()
        .map_err(|source| Error::StoreEndpoint { endpoint: endpoint.clone(), source })?;
    match uri.scheme_str() {
        Some("https") if !has_identity => Err(Error::StoreNeedsCertificates { endpoint }),
        Some("https") => Ok(endpoint),
        _ if uri.host().is_some_and(is_this_machine) => Ok(endpoint),
        _ => Err(Error::StoreUnencrypted { endpoint }),
    }
}

fn is_this_machine(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leaves_the_machine_is_encrypted() {
        let certificates = [false, true];
        for (given, expected) in [
            // Without certificates, with them.
            ("127.0.0.1:2379", ["http://127.0.0.1:2379", "https://127.0.0.1:2379"]),
            ("10.0.0.4:2379", ["unencrypted", "https://10.0.0.4:2379"]),
            ("store:2379", ["unencrypted", "https://store:2379"]),
            ("http://127.0.0.9:1", ["http://127.0.0.9:1"; 2]),
            ("http://[::1]:1", ["http://[::1]:1"; 2]),
            ("http://localhost:1", ["http://localhost:1"; 2]),
            ("http://10.0.0.4:2379", ["unencrypted"; 2]),
            ("http://[fe80::1]:2379", ["unencrypted"; 2]),
            ("http://0.0.0.0:2379", ["unencrypted"; 2]),
            ("http://127.0.0.1.example.com:2379", ["unencrypted"; 2]),
            ("http://127.0.0.1:1@10.0.0.4:2379", ["unencrypted"; 2]),
            ("ftp://10.0.0.4:2379", ["unencrypted"; 2]),
            ("https://10.0.0.4:2379", ["no certificates", "https://10.0.0.4:2379"]),
            ("http://a b", ["not an endpoint"; 2]),
        ] {
            for (has_identity, expected) in certificates.into_iter().zip(expected) {
                let told = match dialled(given, has_identity) {
                    Ok(endpoint) => endpoint,
                    Err(Error::StoreUnencrypted { .. }) => "unencrypted".to_owned(),
                    Err(Error::StoreNeedsCertificates { .. }) => "no certificates".to_owned(),
                    Err(Error::StoreEndpoint { .. }) => "not an endpoint".to_owned(),
                    Err(other) => panic!("{given}: {other}"),
                };
                assert_eq!(told, expected, "{given}, certificates: {has_identity}");
            }
        }
    }
}
