//! `--auth-token`: `simple`, or `jwt` with its options after commas.

use std::{path::PathBuf, time::Duration};

use store::{AuthToken, JwtOptions};

use super::{Error, Settings, duration, suggest};

const FLAG: &str = "auth-token";
const OPTIONS: [&str; 4] = ["sign-method", "pub-key", "priv-key", "ttl"];
const SIGN_METHODS: [&str; 13] = [
    "HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256",
    "ES384", "ES512", "EdDSA",
];
const JWT_TTL_DEFAULT: Duration = Duration::from_secs(5 * 60);

/// What etcd uses if told 0.
const SIMPLE_TTL_DEFAULT_SECONDS: u64 = 300;

pub(crate) fn of(settings: &Settings) -> Result<AuthToken, Error> {
    let mut parts = settings.text(FLAG).split(',');
    match parts.next() {
        Some("simple") => simple(settings),
        Some("jwt") => jwt(settings, parts).map(AuthToken::Jwt),
        _ => Err(settings.bad_value(FLAG, "`simple` or `jwt,…`")),
    }
}

fn simple(settings: &Settings) -> Result<AuthToken, Error> {
    let seconds = match settings.unsigned("auth-token-ttl")? {
        0 => SIMPLE_TTL_DEFAULT_SECONDS,
        seconds => seconds,
    };
    Ok(AuthToken::Simple { ttl: Duration::from_secs(seconds) })
}

fn jwt<'a>(settings: &Settings, parts: impl Iterator<Item = &'a str>) -> Result<JwtOptions, Error> {
    let bad = |expected: &str| settings.bad_value(FLAG, expected);
    let mut sign_method = None;
    let mut options = JwtOptions {
        sign_method: String::new(),
        public_key_file: None,
        private_key_file: None,
        ttl: JWT_TTL_DEFAULT,
    };
    for part in parts {
        let (key, value) = part.split_once('=').ok_or_else(|| bad("`jwt,key=value,…`"))?;
        match key {
            "sign-method" => sign_method = Some(value.to_owned()),
            "pub-key" => options.public_key_file = Some(PathBuf::from(value)),
            "priv-key" => options.private_key_file = Some(PathBuf::from(value)),
            "ttl" => {
                options.ttl =
                    duration::parse(value).ok_or_else(|| bad("`jwt` with a `ttl` such as `5m`"))?;
            }
            _ => return Err(bad(&known_options(key))),
        }
    }
    options.sign_method =
        sign_method.filter(|method| SIGN_METHODS.contains(&method.as_str())).ok_or_else(|| {
            bad(&format!("`jwt` with a `sign-method` of {}", SIGN_METHODS.join(", ")))
        })?;
    if options.public_key_file.is_none() && options.private_key_file.is_none() {
        return Err(bad("`jwt` with a `pub-key` or a `priv-key`"));
    }
    Ok(options)
}

fn known_options(key: &str) -> String {
    match suggest::closest(key, OPTIONS) {
        Some(near) => format!("`{near}` instead of `{key}`"),
        None => format!("`jwt` with {}", OPTIONS.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::config::serve::tests::settings;

    fn check(token: &str, expected: Expect) {
        let actual = match of(&settings(&format!("--auth-token={token}"))) {
            Ok(token) => format!("{token:?}"),
            Err(error) => format!("error: {error}; hint: {}", error.hint()),
        };
        expected.assert_eq(&actual);
    }

    #[test]
    fn both_kinds_are_read() {
        check("simple", expect!["Simple { ttl: 300s }"]);
        check(
            "jwt,sign-method=RS256,pub-key=a.pub,priv-key=a.key,ttl=10m",
            expect![[
                r#"Jwt(JwtOptions { sign_method: "RS256", public_key_file: Some("a.pub"), private_key_file: Some("a.key"), ttl: 600s })"#
            ]],
        );
        check(
            "jwt,sign-method=ES256,pub-key=a.pub",
            expect![[
                r#"Jwt(JwtOptions { sign_method: "ES256", public_key_file: Some("a.pub"), private_key_file: None, ttl: 300s })"#
            ]],
        );
    }

    #[test]
    fn mistakes_are_named() {
        check(
            "basic",
            expect!["error: --auth-token: invalid value `basic`; hint: give `simple` or `jwt,…`"],
        );
        check(
            "jwt,pub-key=a.pub",
            expect![
                "error: --auth-token: invalid value `jwt,pub-key=a.pub`; hint: give `jwt` with a `sign-method` of HS256, HS384, HS512, RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA"
            ],
        );
        check(
            "jwt,sign-method=none,priv-key=a",
            expect![
                "error: --auth-token: invalid value `jwt,sign-method=none,priv-key=a`; hint: give `jwt` with a `sign-method` of HS256, HS384, HS512, RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA"
            ],
        );
        check(
            "jwt,sign-method=RS256",
            expect![
                "error: --auth-token: invalid value `jwt,sign-method=RS256`; hint: give `jwt` with a `pub-key` or a `priv-key`"
            ],
        );
        check(
            "jwt,sign-methd=RS256,priv-key=a",
            expect![
                "error: --auth-token: invalid value `jwt,sign-methd=RS256,priv-key=a`; hint: give `sign-method` instead of `sign-methd`"
            ],
        );
        check(
            "jwt,sign-method=RS256,priv-key=a,ttl=soon",
            expect![
                "error: --auth-token: invalid value `jwt,sign-method=RS256,priv-key=a,ttl=soon`; hint: give `jwt` with a `ttl` such as `5m`"
            ],
        );
    }
}
