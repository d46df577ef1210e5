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

    /// Who shows `token`, seen from `state`.
    pub(super) fn caller(&self, token: &str, state: &State, now: Now) -> Result<Caller, Error> {
        match self {
            Self::Simple(tokens) => {
                let login = tokens.lock().find(token, now.monotonic)?;
                if !state.honours_login(&login.name, login.revision) {
                    return Err(Error::InvalidToken);
                }
                Ok(Caller::User { name: login.name, revision: state.revision() })
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
            Self::Jwt(jwt) => jwt.issue(&login, now.wall),
        }
    }
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
