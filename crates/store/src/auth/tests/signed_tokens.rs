//! Signed tokens: every method, and every reason to refuse one.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use expect_test::expect;
use rcgen::{
    KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, PKCS_RSA_SHA256,
    SignatureAlgorithm,
};
use tempfile::TempDir;

use super::now;
use crate::{
    AuthToken, JwtOptions,
    auth::{
        Caller, Change, Error, KeyError, PasswordHash, State,
        token::{Login, Tokens},
    },
};

const TTL: Duration = Duration::from_secs(300);

/// Key files for one method.
struct Files {
    folder: TempDir,
    method: &'static str,
}

// === impl Files ===

impl Files {
    fn new(method: &'static str) -> Self {
        let files = Self { folder: TempDir::new().unwrap(), method };
        match algorithm(method) {
            Some(algorithm) => {
                let pair = KeyPair::generate_for(algorithm).unwrap();
                fs::write(files.private(), pair.serialize_pem()).unwrap();
                fs::write(files.public(), pair.public_key_pem()).unwrap();
            }
            None => fs::write(files.private(), "a shared secret").unwrap(),
        }
        files
    }

    fn private(&self) -> PathBuf {
        self.folder.path().join("private.pem")
    }

    fn public(&self) -> PathBuf {
        self.folder.path().join("public.pem")
    }

    fn tokens(&self, private: Option<&Path>, public: Option<&Path>) -> Result<Tokens, KeyError> {
        Tokens::new(&AuthToken::Jwt(JwtOptions {
            sign_method: self.method.to_owned(),
            private_key_file: private.map(Path::to_owned),
            public_key_file: public.map(Path::to_owned),
            ttl: TTL,
        }))
    }
}

fn algorithm(method: &str) -> Option<&'static SignatureAlgorithm> {
    match method {
        "ES256" => Some(&PKCS_ECDSA_P256_SHA256),
        "ES384" => Some(&PKCS_ECDSA_P384_SHA384),
        "EdDSA" => Some(&PKCS_ED25519),
        "HS256" | "HS384" | "HS512" => None,
        _ => Some(&PKCS_RSA_SHA256),
    }
}

fn issue(tokens: &Tokens) -> Result<String, Error> {
    let login = Login { name: "alice".into(), revision: 7 };
    tokens.issue(login, &mut rand::rng(), now()).map(|token| token.into_text())
}

fn alice() -> Result<Caller, Error> {
    Ok(Caller::User { name: "alice".into(), revision: 7 })
}

/// A token signed with the private key is good by the public key alone, by the private key alone,
/// and by both.
#[test]
fn every_method_signs_and_checks() {
    for method in [
        "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA", "HS256",
        "HS384", "HS512",
    ] {
        let files = Files::new(method);
        let (private, public) = (files.private(), files.public());
        let signer = files.tokens(Some(&private), None).unwrap();
        let token = issue(&signer).unwrap();
        let caller = |tokens: &Tokens| tokens.caller(&token, &State::default(), now());
        assert_eq!(caller(&signer), alice(), "{method}");
        if algorithm(method).is_some() {
            let verifier = files.tokens(None, Some(&public)).unwrap();
            assert_eq!(caller(&verifier), alice(), "{method}");
            assert_eq!(issue(&verifier), Err(Error::VerifyOnly), "{method}");
            let both = files.tokens(Some(&private), Some(&public)).unwrap();
            assert_eq!(caller(&both), alice(), "{method}");
        }
    }
}

/// `openssl ecparam -genkey` writes elliptic keys in this form.
#[test]
fn elliptic_keys_may_be_sec1() {
    /// The PKCS#8 form ends with the SEC1 form, whose length does not vary.
    const SEC1_LEN: usize = 0x6d;
    let files = Files::new("ES256");
    let pair = KeyPair::from_pem(&fs::read_to_string(files.private()).unwrap()).unwrap();
    let pkcs8 = pair.serialize_der();
    let sec1 = STANDARD.encode(&pkcs8[pkcs8.len() - SEC1_LEN..]);
    let pem = format!("-----BEGIN EC PRIVATE KEY-----\n{sec1}\n-----END EC PRIVATE KEY-----\n");
    fs::write(files.private(), pem).unwrap();

    let tokens = files.tokens(Some(&files.private()), Some(&files.public())).unwrap();
    assert!(issue(&tokens).is_ok());
}

#[test]
fn keys_that_cannot_work_are_refused_at_the_start() {
    let rsa = Files::new("RS256");
    let ec = Files::new("ES256");
    let other = Files::new("ES256");
    let unknown = Files { folder: TempDir::new().unwrap(), method: "ES512" };
    let secret = Files::new("HS256");
    let missing = rsa.folder.path().join("missing.pem");
    let refusal = |result: Result<Tokens, KeyError>| match result.unwrap_err() {
        KeyError::UnknownMethod { method } => format!("unknown method {method}"),
        KeyError::Read { .. } => "unreadable".to_owned(),
        KeyError::Parse { method, .. } => format!("no key for {method:?}"),
        KeyError::Missing => "no key".to_owned(),
        KeyError::Sign { .. } => "cannot sign".to_owned(),
        KeyError::Mismatch { .. } => "mismatch".to_owned(),
    };
    let refusals = [
        refusal(unknown.tokens(None, None)),
        refusal(rsa.tokens(None, None)),
        refusal(secret.tokens(None, Some(&secret.private()))),
        refusal(rsa.tokens(Some(&missing), None)),
        refusal(rsa.tokens(Some(&ec.private()), None)),
        refusal(ec.tokens(None, Some(&rsa.public()))),
        refusal(ec.tokens(Some(&ec.private()), Some(&other.public()))),
    ];
    expect![[r#"
        unknown method ES512
        no key
        no key
        unreadable
        no key for RS256
        no key for ES256
        mismatch"#]]
    .assert_eq(&refusals.join("\n"));
}

#[test]
fn tokens_are_refused_when_late_altered_or_foreign() {
    let files = Files::new("ES256");
    let tokens = files.tokens(Some(&files.private()), None).unwrap();
    let other = Files::new("ES256");
    let foreign = other.tokens(Some(&other.private()), None).unwrap();
    let token = issue(&tokens).unwrap();
    let altered = {
        let mut parts = token.split('.');
        let (header, _, signature) = (parts.next().unwrap(), parts.next(), parts.next().unwrap());
        let claims = STANDARD.encode(r#"{"username":"root","revision":7}"#);
        format!("{header}.{}.{signature}", claims.trim_end_matches('='))
    };
    let state = State::default();
    let start = now();
    let shown = |token: &str, seconds| tokens.caller(token, &state, start.after(seconds));
    assert_eq!(shown(&token, 299), alice());
    assert_eq!(shown(&token, 300), Err(Error::InvalidToken), "expired");
    assert_eq!(shown(&altered, 0), Err(Error::InvalidToken), "altered");
    assert_eq!(shown(&issue(&foreign).unwrap(), 0), Err(Error::InvalidToken), "foreign");
    assert_eq!(shown("", 0), Err(Error::InvalidToken), "empty");
    assert_eq!(shown("abcdefghijklmnop.1", 0), Err(Error::InvalidToken), "simple");
}

/// Tokens signed by others: which claims are needed, and what they may look like.
#[test]
fn claims() {
    let files = Files::new("HS256");
    let tokens = files.tokens(Some(&files.private()), None).unwrap();
    let key = jsonwebtoken::EncodingKey::from_secret(b"a shared secret");
    let mut told = String::new();
    for claims in [
        r#"{"username":"alice","revision":7}"#,
        r#"{"username":"alice","revision":7.0,"exp":1800000000.5}"#,
        r#"{"username":"alice","revision":7,"exp":1800000000}"#,
        r#"{"username":"alice","revision":7,"nbf":1800000000}"#,
        r#"{"username":"alice","revision":7,"nbf":1800000001}"#,
        r#"{"username":"alice","revision":7,"exp":"never"}"#,
        r#"{"username":"alice","revision":7,"aud":"others"}"#,
        r#"{"username":"alice"}"#,
        r#"{"revision":7}"#,
        r#"{"username":7,"revision":7}"#,
        r#"{"username":"alice","revision":"7"}"#,
    ] {
        let value: serde_json::Value = serde_json::from_str(claims).unwrap();
        let token = jsonwebtoken::encode(&jsonwebtoken::Header::default(), &value, &key).unwrap();
        let caller = tokens.caller(&token, &State::default(), now());
        told += &format!("{claims} → {}\n", if caller == alice() { "alice" } else { "refused" });
    }
    expect![[r#"
        {"username":"alice","revision":7} → alice
        {"username":"alice","revision":7.0,"exp":1800000000.5} → alice
        {"username":"alice","revision":7,"exp":1800000000} → refused
        {"username":"alice","revision":7,"nbf":1800000000} → alice
        {"username":"alice","revision":7,"nbf":1800000001} → refused
        {"username":"alice","revision":7,"exp":"never"} → refused
        {"username":"alice","revision":7,"aud":"others"} → alice
        {"username":"alice"} → refused
        {"revision":7} → refused
        {"username":7,"revision":7} → refused
        {"username":"alice","revision":"7"} → refused
    "#]]
    .assert_eq(&told);
}

/// A signed token cannot be called back, but what it grants ends with the next change.
#[test]
fn a_token_of_an_older_revision_grants_nothing() {
    let files = Files::new("HS256");
    let tokens = files.tokens(Some(&files.private()), None).unwrap();
    let password = || Some(PasswordHash::from(bytes::Bytes::from_static(b"hash")));
    let mut state = State::default();
    let root = Caller::User { name: "root".into(), revision: 1 };
    for change in [
        Change::AddUser { name: "root".to_owned(), password: password() },
        Change::GrantRole { user: "root".to_owned(), role: "root".to_owned() },
        Change::Enable,
    ] {
        state.apply(&root, change).unwrap();
    }
    let login = Login { name: Arc::from("root"), revision: state.revision() };
    let token = tokens.issue(login, &mut rand::rng(), now()).unwrap().into_text();
    let range = |state: &State| {
        let caller = tokens.caller(&token, state, now()).unwrap();
        state.access(&caller).range(b"a", b"")
    };
    assert_eq!(range(&state), Ok(()));
    state.apply(&root, Change::AddRole { name: "app".to_owned() }).unwrap();
    assert_eq!(range(&state), Err(Error::OldRevision));
}
