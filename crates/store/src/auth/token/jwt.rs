//! Signed tokens. Whoever has the public key can check them, so they need no table, survive a
//! restart, and cannot be called back: a token is good until it expires, but grants nothing once
//! users or roles have changed since it was signed.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};

use super::{
    Login, Token,
    key::{KeyError, Keys},
};
use crate::{JwtOptions, auth::Error};

#[derive(Debug)]
pub(in crate::auth) struct Jwt {
    method: Algorithm,
    keys: Keys,
    ttl: Duration,
    validation: Validation,
}

#[derive(Serialize)]
struct IssuedClaims<'a> {
    username: &'a str,
    revision: u64,
    exp: u64,
}

/// Numbers as JSON has them: others may sign tokens too, and write `7.0` or half seconds.
#[derive(Deserialize)]
struct ShownClaims {
    username: String,
    revision: f64,
    /// Without it the token never expires.
    exp: Option<f64>,
    nbf: Option<f64>,
}

// === impl Jwt ===

impl Jwt {
    pub(super) fn new(options: &JwtOptions) -> Result<Self, KeyError> {
        let method = options
            .sign_method
            .parse()
            .map_err(|_unknown| KeyError::UnknownMethod { method: options.sign_method.clone() })?;
        let keys = Keys::load(method, options)?;
        Ok(Self { method, keys, ttl: options.ttl, validation: signature_only(method) })
    }

    /// Signs and checks with a secret that is nobody's file.
    pub(super) fn of_secret(secret: &[u8], ttl: Duration) -> Self {
        let method = Algorithm::HS256;
        let keys = Keys {
            private: Some(EncodingKey::from_secret(secret)),
            public: DecodingKey::from_secret(secret),
        };
        Self { method, keys, ttl, validation: signature_only(method) }
    }

    pub(super) fn verify(&self, token: &str, now: SystemTime) -> Result<Login, Error> {
        let claims =
            jsonwebtoken::decode::<ShownClaims>(token, &self.keys.public, &self.validation)
                .map_err(|_invalid| Error::InvalidToken)?
                .claims;
        if !claims.is_valid_at(since_epoch(now)) {
            return Err(Error::InvalidToken);
        }
        // Fractions are cut and what does not fit is clamped.
        let revision = claims.revision as u64;
        Ok(Login { name: claims.username.into(), revision })
    }

    pub(super) fn issue(&self, login: &Login, now: SystemTime) -> Result<Token, Error> {
        let key = self.keys.private.as_ref().ok_or(Error::VerifyOnly)?;
        let claims = IssuedClaims {
            username: &login.name,
            revision: login.revision,
            exp: (since_epoch(now) + self.ttl).as_secs(),
        };
        let text = jsonwebtoken::encode(&Header::new(self.method), &claims, key)
            .expect("the key signed a token when it was loaded");
        Ok(Token(text))
    }
}

// === impl ShownClaims ===

impl ShownClaims {
    fn is_valid_at(&self, now: Duration) -> bool {
        let now_s = now.as_secs_f64();
        self.exp.is_none_or(|exp| now_s < exp) && self.nbf.is_none_or(|nbf| nbf <= now_s)
    }
}

/// Checks the signature and leaves the claims to us, since the library reads its own clock.
pub(super) fn signature_only(method: Algorithm) -> Validation {
    let mut validation = Validation::new(method);
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    validation.validate_nbf = false;
    validation.validate_aud = false;
    validation
}

/// A clock set before 1970 counts as 1970.
fn since_epoch(now: SystemTime) -> Duration {
    now.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO)
}
