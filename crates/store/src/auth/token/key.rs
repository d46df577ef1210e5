//! The keys of signed tokens: read from files, and tried before they are used.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use jsonwebtoken::{
    Algorithm, AlgorithmFamily, DecodingKey, EncodingKey, Header, errors::Error as JwtError,
    jwk::Jwk,
};
use rustls::pki_types::{PrivateSec1KeyDer, pem::PemObject as _};

use super::jwt::signature_only;
use crate::JwtOptions;

/// Why tokens cannot be signed or checked as configured.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("unknown method `{method}` to sign tokens")]
    UnknownMethod { method: String },
    #[error("the key file `{}` could not be read", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("`{}` is not a key for {method:?} in PEM form", path.display())]
    Parse {
        path: PathBuf,
        method: Algorithm,
        #[source]
        source: JwtError,
    },
    #[error("no key to sign or check tokens was given")]
    Missing,
    #[error("no token could be signed with `{}`", path.display())]
    Sign {
        path: PathBuf,
        #[source]
        source: JwtError,
    },
    #[error("the public key does not belong to the private key `{}`", path.display())]
    Mismatch {
        path: PathBuf,
        #[source]
        source: JwtError,
    },
}

#[derive(Debug)]
pub(super) struct Keys {
    /// Without it tokens are checked but not issued.
    pub(super) private: Option<EncodingKey>,
    pub(super) public: DecodingKey,
}

// === impl Keys ===

impl Keys {
    pub(super) fn load(method: Algorithm, options: &JwtOptions) -> Result<Self, KeyError> {
        let private = options.private_key_file.as_deref();
        let private = private.map(|path| load_private(method, path)).transpose()?;
        let public_file = options.public_key_file.as_deref();
        // With a shared secret there is no public half, and a file given for it is not looked at.
        let public_file = public_file.filter(|_| method.family() != AlgorithmFamily::Hmac);
        let public = public_file.map(|path| load_public(method, path)).transpose()?;
        match (private, public) {
            (None, None) => Err(KeyError::Missing),
            (None, Some(public)) => Ok(Self { private: None, public }),
            (Some((path, private)), public) => {
                let public = public.map_or_else(|| public_half(method, path, &private), Ok)?;
                probe(method, path, &private, &public)?;
                Ok(Self { private: Some(private), public })
            }
        }
    }
}

fn load_private(method: Algorithm, path: &Path) -> Result<(&Path, EncodingKey), KeyError> {
    let pem = read(path)?;
    let key = match method.family() {
        AlgorithmFamily::Hmac => Ok(EncodingKey::from_secret(&pem)),
        AlgorithmFamily::Rsa => EncodingKey::from_rsa_pem(&pem),
        AlgorithmFamily::Ec => match PrivateSec1KeyDer::from_pem_slice(&pem) {
            Ok(sec1) => Ok(EncodingKey::from_ec_der(&pkcs8(method, sec1.secret_sec1_der()))),
            Err(_) => EncodingKey::from_ec_pem(&pem),
        },
        AlgorithmFamily::Ed => EncodingKey::from_ed_pem(&pem).map(without_public_half),
    };
    let key = key.map_err(|source| KeyError::Parse { path: path.to_owned(), method, source })?;
    Ok((path, key))
}

fn load_public(method: Algorithm, path: &Path) -> Result<DecodingKey, KeyError> {
    let pem = read(path)?;
    let key = match method.family() {
        AlgorithmFamily::Hmac => Ok(DecodingKey::from_secret(&pem)),
        AlgorithmFamily::Rsa => DecodingKey::from_rsa_pem(&pem),
        AlgorithmFamily::Ec => DecodingKey::from_ec_pem(&pem),
        AlgorithmFamily::Ed => DecodingKey::from_ed_pem(&pem),
    };
    key.map_err(|source| KeyError::Parse { path: path.to_owned(), method, source })
}

fn read(path: &Path) -> Result<Vec<u8>, KeyError> {
    fs::read(path).map_err(|source| KeyError::Read { path: path.to_owned(), source })
}

fn public_half(
    method: Algorithm,
    path: &Path,
    private: &EncodingKey,
) -> Result<DecodingKey, KeyError> {
    let jwk = Jwk::from_encoding_key(private, method);
    let public = jwk.and_then(|jwk| DecodingKey::from_jwk(&jwk));
    public.map_err(|source| KeyError::Parse { path: path.to_owned(), method, source })
}

/// Signs one token and checks it, so that what is wrong with the keys is told when the store starts.
fn probe(
    method: Algorithm,
    path: &Path,
    private: &EncodingKey,
    public: &DecodingKey,
) -> Result<(), KeyError> {
    let token = jsonwebtoken::encode(&Header::new(method), &serde_json::json!({}), private)
        .map_err(|source| KeyError::Sign { path: path.to_owned(), source })?;
    jsonwebtoken::decode::<serde_json::Value>(token, public, &signature_only(method))
        .map_err(|source| KeyError::Mismatch { path: path.to_owned(), source })?;
    Ok(())
}

/// Cuts off the public half that some programs append to an Ed25519 key, because the library tells
/// the curve from the length.
fn without_public_half(key: EncodingKey) -> EncodingKey {
    /// Sequence of version 0, Ed25519, and an octet string with the 32 bytes of the seed in another.
    const HEAD: [u8; 16] =
        [0x30, 46, 0x02, 0x01, 0x00, 0x30, 5, 0x06, 3, 0x2b, 0x65, 0x70, 0x04, 34, 0x04, 32];
    /// From where on the head is the same with and without the public half.
    const COMMON: usize = 5;
    const SEED_LEN: usize = 32;

    let der = key.as_bytes();
    let is_usual = der.get(COMMON..HEAD.len()) == Some(&HEAD[COMMON..]);
    match der.get(HEAD.len()..HEAD.len() + SEED_LEN) {
        Some(seed) if is_usual => EncodingKey::from_ed_der(&[&HEAD[..], seed].concat()),
        _ => key,
    }
}

/// Wraps the SEC1 form that `openssl ecparam -genkey` writes into the PKCS#8 form that the library
/// reads: version 0, the algorithm with its curve, and the key as it is.
fn pkcs8(method: Algorithm, sec1: &[u8]) -> Vec<u8> {
    const VERSION: &[u8] = &[0x02, 0x01, 0x00];
    const EC_PUBLIC_KEY: &[u8] = &[0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
    const P256: &[u8] = &[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
    const P384: &[u8] = &[0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x22];
    const SEQUENCE: u8 = 0x30;
    const OCTET_STRING: u8 = 0x04;

    let curve = if method == Algorithm::ES384 { P384 } else { P256 };
    let algorithm = der(SEQUENCE, &[EC_PUBLIC_KEY, curve]);
    der(SEQUENCE, &[VERSION, &algorithm, &der(OCTET_STRING, &[sec1])])
}

fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let len = content.len().to_be_bytes();
    let significant = &len[len.iter().take_while(|byte| **byte == 0).count()..];
    let mut encoded = vec![tag];
    match significant {
        [] => encoded.push(0),
        [short @ ..0x80] => encoded.push(*short),
        long => {
            encoded.push(0x80 | long.len() as u8);
            encoded.extend_from_slice(long);
        }
    }
    encoded.extend_from_slice(&content);
    encoded
}
