//! Tokens: what a client gets for its password and shows with every request.

mod jwt;
mod key;
mod simple;

use std::{fmt, sync::Arc, time::SystemTime};

use parking_lot::Mutex;
use rand::Rng;
use tokio::time::Instant;

pub(crate) use self::key::KeyError;
use self::{jwt::Jwt, simple::SimpleTokens};
use super::{Caller, Error, State};
use crate::AuthToken;

/// One moment on both clocks: tokens kept here end by the clock that never jumps, signed tokens
/// carry the time of day.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    pub(crate) monotonic: Instant,
    pub(crate) wall: SystemTime,
}

/// A secret: whoever has it is the user.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Token(String);

/// A verified password: whose it is, and the auth revision at which it was verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Login {
    pub(super) name: Arc<str>,
    pub(super) revision: u64,
}

/// The tokens of one store.
#[derive(Debug)]
pub(super) enum Tokens {
    /// Kept in memory, so a restart ends them. They stay good when users or roles change, and end
    /// with the password. The lock is held for a lookup in a map.
    Simple(Mutex<SimpleTokens>),
    /// The same, but signed with what all members know: one that meets a token for the first time keeps
    /// it from then on, if it is not older than it may be unused.
    Shared { kept: Mutex<SimpleTokens>, signed: Box<Jwt> },
    /// Kept nowhere: they end when they expire, or when users or roles change.
    Jwt(Box<Jwt>),
}

// === impl Tokens ===

impl Tokens {
    pub(super) fn new(options: &AuthToken) -> Result<Self, KeyError> {
        Ok(match options {
            AuthToken::Simple { ttl } => Self::Simple(Mutex::new(SimpleTokens::new(*ttl))),
            AuthToken::Jwt(options) => Self::Jwt(Box::new(Jwt::new(options)?)),
        })
    }

    /// Signs simple tokens; others are signed already.
    pub(super) fn signed_with(self, secret: &[u8]) -> Self {
        match self {
            Self::Simple(kept) => {
                let signed = Jwt::of_secret(secret, kept.lock().ttl());
                Self::Shared { kept, signed: Box::new(signed) }
            }
            tokens => tokens,
        }
    }

    /// Who shows `token`, seen from `state`.
    pub(super) fn caller(&self, token: &str, state: &State, now: Now) -> Result<Caller, Error> {
        match self {
            Self::Simple(tokens) => honoured(tokens.lock().find(token, now.monotonic)?, state),
            Self::Shared { kept, signed } => {
                if let Ok(login) = kept.lock().find(token, now.monotonic) {
                    return honoured(login, state);
                }
                let login = signed.verify(token, now.wall)?;
                kept.lock().admit(token.to_owned(), login.clone(), now.monotonic);
                honoured(login, state)
            }
            Self::Jwt(jwt) => {
                let Login { name, revision } = jwt.verify(token, now.wall)?;
                Ok(Caller::User { name, revision })
            }
        }
    }

    pub(super) fn issue(&self, login: Login, rng: &mut impl Rng, now: Now) -> Result<Token, Error> {
        match self {
            Self::Simple(tokens) => Ok(tokens.lock().issue(login, rng, now.monotonic)),
            Self::Shared { kept, signed } => {
                let token = signed.issue(&login, now.wall)?;
                kept.lock().admit(token.0.clone(), login, now.monotonic);
                Ok(token)
            }
            Self::Jwt(jwt) => jwt.issue(&login, now.wall),
        }
    }
}

/// Who logged in, unless the password has changed since.
fn honoured(login: Login, state: &State) -> Result<Caller, Error> {
    if !state.honours_login(&login.name, login.revision) {
        return Err(Error::InvalidToken);
    }
    Ok(Caller::User { name: login.name, revision: state.revision() })
}

// === impl Token ===

impl Token {
    /// The text for the client. Not to be logged.
    pub(crate) fn into_text(self) -> String {
        self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}
