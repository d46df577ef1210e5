//! Simple tokens: random text, known to this process only. Pure; time and randomness come in.

use std::{collections::HashMap, fmt, time::Duration};

use rand::{Rng, RngExt as _};
use tokio::time::Instant;

use super::{Login, Token};
use crate::auth::Error;

/// Tokens kept at most. At about 150 bytes each this is 10 MB; one more costs the token that was
/// unused for longest, whose client logs in again.
const TOKENS_MAX: usize = 1 << 16;

const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
/// Makes 91 bits of randomness.
const LETTERS_PER_TOKEN: usize = 16;

/// All simple tokens.
///
/// A token ends when it was not used for the TTL. Those that did stay in the table until their place
/// is needed or they are shown again. That a password was changed is not known here.
pub(in crate::auth) struct SimpleTokens {
    ttl: Duration,
    tokens: HashMap<String, Session>,
    /// Counts from 1; the number behind the dot keeps tokens apart even if the letters repeat.
    issued: u64,
}

struct Session {
    login: Login,
    deadline: Instant,
}

// === impl SimpleTokens ===

impl SimpleTokens {
    pub(super) fn new(ttl: Duration) -> Self {
        Self { ttl, tokens: HashMap::new(), issued: 0 }
    }

    pub(super) fn ttl(&self) -> Duration {
        self.ttl
    }

    /// The login that got the token; using it gives it its full time again.
    pub(super) fn find(&mut self, token: &str, now: Instant) -> Result<Login, Error> {
        let session = self.tokens.get_mut(token).ok_or(Error::InvalidToken)?;
        if session.deadline < now {
            self.tokens.remove(token);
            return Err(Error::InvalidToken);
        }
        session.deadline = now + self.ttl;
        Ok(session.login.clone())
    }

    pub(super) fn issue(&mut self, login: Login, rng: &mut impl Rng, now: Instant) -> Token {
        self.issued += 1;
        let letters = (0..LETTERS_PER_TOKEN)
            .map(|_| char::from(LETTERS[rng.random_range(..LETTERS.len())]))
            .collect::<String>();
        let token = format!("{letters}.{}", self.issued);
        self.admit(token.clone(), login, now);
        Token(token)
    }

    /// Knows a token from now on.
    pub(super) fn admit(&mut self, token: String, login: Login, now: Instant) {
        if self.tokens.len() >= TOKENS_MAX {
            self.make_room(now);
        }
        self.tokens.insert(token, Session { login, deadline: now + self.ttl });
    }

    fn make_room(&mut self, now: Instant) {
        self.tokens.retain(|_, session| session.deadline >= now);
        if self.tokens.len() < TOKENS_MAX {
            return;
        }
        let oldest = self.tokens.iter().min_by_key(|(_, session)| session.deadline);
        if let Some(token) = oldest.map(|(token, _)| token.clone()) {
            self.tokens.remove(&token);
        }
    }
}

impl fmt::Debug for SimpleTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimpleTokens").field("count", &self.tokens.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(300);

    fn login(name: &str) -> Login {
        Login { name: name.into(), revision: 1 }
    }

    /// When full, the token unused for longest gives way; the others stay good.
    #[test]
    fn the_table_is_bounded() {
        let mut tokens = SimpleTokens::new(TTL);
        let mut rng = rand::rng();
        let start = crate::auth::tests::now().monotonic;
        let oldest = tokens.issue(login("alice"), &mut rng, start);
        let second = tokens.issue(login("alice"), &mut rng, start + Duration::from_secs(1));
        for _ in 2..TOKENS_MAX {
            tokens.issue(login("bob"), &mut rng, start + Duration::from_secs(2));
        }
        tokens.issue(login("carol"), &mut rng, start + Duration::from_secs(3));

        assert_eq!(tokens.tokens.len(), TOKENS_MAX);
        let later = start + Duration::from_secs(4);
        assert_eq!(tokens.find(&oldest.0, later), Err(Error::InvalidToken));
        assert_eq!(tokens.find(&second.0, later), Ok(login("alice")));
    }

    /// Expired tokens give way first, all of them.
    #[test]
    fn expired_tokens_make_room() {
        let mut tokens = SimpleTokens::new(TTL);
        let mut rng = rand::rng();
        let start = crate::auth::tests::now().monotonic;
        for _ in 0..TOKENS_MAX {
            tokens.issue(login("bob"), &mut rng, start);
        }
        tokens.issue(login("carol"), &mut rng, start + TTL + Duration::from_secs(1));
        assert_eq!(tokens.tokens.len(), 1);
    }
}
