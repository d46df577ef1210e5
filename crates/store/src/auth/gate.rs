//! The gate services stand behind: the published state of users and roles, the tokens, and logging
//! in. Never changes users or roles: that goes through the sequencer, which publishes here.

use std::sync::Arc;

use arc_swap::ArcSwap;
use http::{Extensions, HeaderMap};

use super::{
    Caller, Error, KeyError, Now, Passwords, Relayed, State, Token, identity,
    token::{Login, Tokens},
};
use crate::AuthToken;

/// How often a login starts over because users or roles changed while its password was hashed.
const LOGIN_ATTEMPTS_MAX: usize = 8;

#[derive(Debug)]
pub(crate) struct Gate {
    state: ArcSwap<State>,
    tokens: Tokens,
    passwords: Passwords,
}

// === impl Gate ===

impl Gate {
    pub(crate) fn new(
        token: &AuthToken,
        bcrypt_cost: u32,
        state: Arc<State>,
    ) -> Result<Self, KeyError> {
        Ok(Self {
            state: ArcSwap::new(state),
            tokens: Tokens::new(token)?,
            passwords: Passwords::new(bcrypt_cost),
        })
    }

    /// The same, with simple tokens that are good at every member that has the secret.
    pub(crate) fn sharing(self, secret: Option<&[u8]>) -> Self {
        match secret {
            Some(secret) => Self { tokens: self.tokens.signed_with(secret), ..self },
            None => self,
        }
    }

    /// The newest durable state.
    pub(crate) fn state(&self) -> Arc<State> {
        self.state.load_full()
    }

    pub(crate) fn passwords(&self) -> &Passwords {
        &self.passwords
    }

    /// Whether what is known here must be the newest before a request is passed on. Whoever shows a token
    /// may know that auth was enabled before this member does.
    pub(crate) fn must_be_newest(&self, headers: &HeaderMap) -> bool {
        let shows_token = || identity::presented_token(headers).is_ok_and(|token| token.is_some());
        self.state.load().is_enabled() || shows_token()
    }

    /// Who sends a request, by its token or else by its client certificate. A token that is no good
    /// is an error even where nobody needs to be known.
    pub(crate) fn caller(
        &self,
        headers: &HeaderMap,
        extensions: &Extensions,
        now: Now,
    ) -> Result<Caller, Error> {
        let state = self.state.load();
        if !state.is_enabled() {
            return Ok(Caller::Anonymous);
        }
        if extensions.get::<Relayed>().is_some() {
            return Relayed::read(headers, &state);
        }
        if let Some(token) = identity::presented_token(headers)? {
            return self.tokens.caller(token, &state, now);
        }
        let revision = state.revision();
        let certified = identity::certified_name(headers, extensions);
        Ok(certified.map_or(Caller::Anonymous, |name| Caller::User { name, revision }))
    }

    /// Exchanges a password for a token.
    pub(crate) async fn login(&self, name: &str, password: &str, now: Now) -> Result<Token, Error> {
        for _ in 0..LOGIN_ATTEMPTS_MAX {
            let state = self.state();
            let hash = state.password_of(name)?.clone();
            if !self.passwords.verify(hash, password.to_owned()).await? {
                return Err(Error::WrongPassword);
            }
            // A token of an older revision may be worth nothing already.
            if self.state.load().revision() == state.revision() {
                let login = Login { name: name.into(), revision: state.revision() };
                return self.tokens.issue(login, &mut rand::rng(), now);
            }
        }
        Err(Error::OldRevision)
    }

    /// Makes a durable state the one that counts. It ends the tokens of users who were deleted or
    /// whose password changed.
    pub(crate) fn publish(&self, state: Arc<State>) {
        self.state.store(state);
    }
}
