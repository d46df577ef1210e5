//! Who sends a request: what it presents, and who that turns out to be. Never decides whether a
//! token is good.

use std::sync::Arc;

use http::HeaderMap;

use super::Error;

/// Where gRPC clients put their token.
const TOKEN_HEADER: &str = "token";
/// Where HTTP clients put it.
const AUTHORIZATION_HEADER: &str = "authorization";
const BEARER: &str = "Bearer ";
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
