//! Who sends a request: what it presents, and who that turns out to be. Never decides whether a
//! token is good.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderMap, HeaderValue};

use super::{Error, State};

/// Where gRPC clients put their token.
const TOKEN_HEADER: &str = "token";
/// Where HTTP clients put it.
const AUTHORIZATION_HEADER: &str = "authorization";
const BEARER: &str = "Bearer ";
/// Whom a member acts for, in base64, the auth revision for which the name was established, and the
/// one that the member knew when it found the name good.
const CALLER_HEADER: &str = "windlass-caller";
const REVISION_HEADER: &str = "windlass-caller-revision";
const KNOWN_HEADER: &str = "windlass-known-revision";
/// Marks a request that came through a JSON gateway. A gateway may be a process of its own that
/// connects with its own certificate, whose name says nothing about the client behind it.
const GATEWAY_HEADER: &str = "grpcgateway-accept";

/// The subject of a verified client certificate. The HTTP edge adds it to a request's extensions, on
/// listeners whose certificates name clients only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerIdentity {
    pub common_name: Arc<str>,
}

/// On whose behalf a request runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// The request named nobody, or auth was off when it came in.
    Anonymous,
    User {
        name: Arc<str>,
        /// The auth revision for which the name was established. Rights are not looked up in a newer
        /// state.
        revision: u64,
    },
}

/// Marks a request that another member passed on, on behalf of whom it names. The HTTP edge adds it
/// to requests on the listeners that only members reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Relayed;

// === impl Relayed ===

impl Relayed {
    /// Names the caller, in place of what it presented, and the auth revision that is known here.
    pub(crate) fn write(caller: &Caller, known: u64, headers: &mut HeaderMap) {
        let ours = [CALLER_HEADER, REVISION_HEADER, KNOWN_HEADER];
        for presented in [TOKEN_HEADER, AUTHORIZATION_HEADER].into_iter().chain(ours) {
            headers.remove(presented);
        }
        if let Caller::User { name, revision } = caller {
            let name = BASE64_STANDARD.encode(name.as_bytes());
            let name = HeaderValue::try_from(name).expect("base64 is text");
            headers.insert(CALLER_HEADER, name);
            headers.insert(REVISION_HEADER, HeaderValue::from(*revision));
            headers.insert(KNOWN_HEADER, HeaderValue::from(known));
        }
    }

    /// Who is named, unless `state` knows of a password that changed, or of a user who went, after the
    /// member that passed the request on last looked.
    pub(super) fn read(headers: &HeaderMap, state: &State) -> Result<Caller, Error> {
        let Some(name) = headers.get(CALLER_HEADER) else { return Ok(Caller::Anonymous) };
        let name = BASE64_STANDARD.decode(name).map_err(|_not_base64| Error::InvalidToken)?;
        let name = String::from_utf8(name).map_err(|_not_utf8| Error::InvalidToken)?;
        let revision = revision_in(headers, REVISION_HEADER)?;
        let known = revision_in(headers, KNOWN_HEADER)?;
        if known < state.revision() && !state.honours_login(&name, known) {
            return Err(Error::InvalidToken);
        }
        Ok(Caller::User { name: name.into(), revision })
    }
}

fn revision_in(headers: &HeaderMap, header: &str) -> Result<u64, Error> {
    let text = headers.get(header).and_then(|value| value.to_str().ok());
    text.and_then(|text| text.parse().ok()).ok_or(Error::InvalidToken)
}

/// The token a request presents, if any.
pub(super) fn presented_token(headers: &HeaderMap) -> Result<Option<&str>, Error> {
    let Some(value) = headers.get(TOKEN_HEADER).or_else(|| headers.get(AUTHORIZATION_HEADER))
    else {
        return Ok(None);
    };
    let text = value.to_str().map_err(|_not_text| Error::InvalidToken)?;
    Ok(Some(text.strip_prefix(BEARER).unwrap_or(text)))
}

/// The name on the client's certificate, unless a gateway stands between.
pub(super) fn certified_name(
    headers: &HeaderMap,
    extensions: &http::Extensions,
) -> Option<Arc<str>> {
    let is_relayed = headers.contains_key(GATEWAY_HEADER);
    let identity = extensions.get::<PeerIdentity>().filter(|_| !is_relayed)?;
    Some(Arc::clone(&identity.common_name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relayed_caller_is_who_it_was_and_shows_no_token() {
        for caller in [Caller::Anonymous, Caller::User { name: "häuser\n".into(), revision: 7 }] {
            let mut headers = HeaderMap::new();
            headers.insert(TOKEN_HEADER, HeaderValue::from_static("secret"));
            headers.insert(CALLER_HEADER, HeaderValue::from_static("cm9vdA=="));
            Relayed::write(&caller, 7, &mut headers);
            assert!(presented_token(&headers).unwrap().is_none());
            assert_eq!(Relayed::read(&headers, &State::default()).unwrap(), caller);
        }
    }

    #[test]
    fn a_broken_name_is_nobody() {
        let mut headers = HeaderMap::new();
        headers.insert(CALLER_HEADER, HeaderValue::from_static("cm9vdA=="));
        let read = |headers: &HeaderMap| Relayed::read(headers, &State::default());
        assert!(read(&headers).is_err(), "without the revisions");
        headers.insert(REVISION_HEADER, HeaderValue::from_static("7"));
        assert!(read(&headers).is_err(), "without the known one");
        headers.insert(KNOWN_HEADER, HeaderValue::from_static("7"));
        assert!(read(&headers).is_ok());
        headers.insert(CALLER_HEADER, HeaderValue::from_static("?"));
        assert!(read(&headers).is_err());
    }
}
