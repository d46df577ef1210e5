//! Who may ask over HTTP: by which names the store may be addressed in plain text, and whose pages a
//! browser lets read the answers, or ask at all. Owns these decisions; who a client is was decided
//! before.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, HOST,
    ORIGIN,
};
use http::{HeaderMap, HeaderValue, Request};

use crate::options::HttpAccess;

const ANY: &str = "*";

/// The decisions for one listener.
pub(super) struct Access {
    origins: Allowed,
    hosts: Allowed,
    refuses_other_pages: bool,
}

/// Which words are allowed.
enum Allowed {
    Every,
    Only(Vec<String>),
}

// === impl Access ===

impl Access {
    /// Encryption proves the name by which the store was addressed, so that any will do then.
    pub(super) fn new(options: &HttpAccess, is_encrypted: bool) -> Self {
        let hosts = if is_encrypted { Allowed::Every } else { Allowed::of(&options.hosts) };
        let refuses_other_pages = options.refuses_other_pages;
        Self { origins: Allowed::of(&options.origins), hosts, refuses_other_pages }
    }

    /// The origin of the page that asks, if it must not.
    pub(super) fn unexpected_page<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let origin = headers.get(ORIGIN).filter(|_| self.refuses_other_pages)?;
        let origin = origin.to_str().unwrap_or_default();
        (!self.origins.allows(origin)).then_some(origin)
    }

    /// The name by which the store was addressed, if it must not be.
    pub(super) fn unexpected_host<'a, B>(&self, request: &'a Request<B>) -> Option<&'a str> {
        let host = match request.uri().authority() {
            Some(authority) => authority.as_str(),
            None => {
                (request.headers().get(HOST)).map_or("", |host| host.to_str().unwrap_or_default())
            }
        };
        let name = without_port(host);
        (!self.hosts.allows(name)).then_some(name)
    }

    /// Whose pages may read the answer to a request with these headers, if any may.
    pub(super) fn readers(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        match &self.origins {
            Allowed::Every => Some(HeaderValue::from_static(ANY)),
            Allowed::Only(_) => headers
                .get(ORIGIN)
                .filter(|origin| origin.to_str().is_ok_and(|origin| self.origins.allows(origin)))
                .cloned(),
        }
    }
}

/// Tells a browser that pages of the origin may read the answer.
pub(super) fn allow_origin(headers: &mut HeaderMap, origin: HeaderValue) {
    let methods = HeaderValue::from_static("POST, GET, OPTIONS, PUT, DELETE");
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    let names = HeaderValue::from_static("accept, content-type, authorization");
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, names);
}

// === impl Allowed ===

impl Allowed {
    fn of(words: &[String]) -> Self {
        if words.is_empty() || words.iter().any(|word| word == ANY) {
            Self::Every
        } else {
            Self::Only(words.to_vec())
        }
    }

    fn allows(&self, word: &str) -> bool {
        match self {
            Self::Every => true,
            Self::Only(words) => words.iter().any(|allowed| allowed == word),
        }
    }
}

/// `name:port` and `[address]:port` without their ports; what has none as it is.
fn without_port(host: &str) -> &str {
    let Some((name, _port)) = host.rsplit_once(':') else { return host };
    match name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        Some(address) => address,
        None if name.contains(':') => host,
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_no_part_of_a_name() {
        for (host, name) in [
            ("store:2379", "store"),
            ("store", "store"),
            ("127.0.0.1:2379", "127.0.0.1"),
            ("[::1]:2379", "::1"),
            ("[::1]", "[::1]"),
            ("::1", "::1"),
            ("", ""),
        ] {
            assert_eq!(without_port(host), name);
        }
    }
}
