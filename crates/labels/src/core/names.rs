//! How objects are called: nodes by their hash, transactions by hash and resource version.

use std::{fmt, str::FromStr};

use sha2::{Digest, Sha256};

use super::{
    label,
    rv::{ResourceVersion, RvError},
};

const HASH_DIGITS: usize = 64;

/// The SHA-256 of a node's name; written as 64 hexadecimal digits, whatever the name's length.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeHash([u8; 32]);

/// `<hash of the node's name>.<resource version of the event>`.
///
/// Every watcher gives an event the same name, so that it is queued once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransactionName {
    node: NodeHash,
    rv: ResourceVersion,
}

/// Why a ConfigMap's name is none of a transaction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("{0:?} has no dot between hash and resource version")]
    NoDot(String),
    #[error("{0:?} does not start with 64 lower-case hexadecimal digits")]
    Hash(String),
    #[error("{name:?} does not end with a resource version")]
    Rv {
        name: String,
        #[source]
        source: RvError,
    },
}

/// Whether a node can be called so. The name becomes part of a request's path, where another text
/// would mean another object, or none.
#[must_use]
pub fn is_node_name(text: &str) -> bool {
    label::is_subdomain(text)
}

// === impl NodeHash ===

impl NodeHash {
    #[must_use]
    pub fn of(node: &str) -> Self {
        Self(Sha256::digest(node).into())
    }

    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Where it lies on the circle of hashes: its first eight bytes.
    #[must_use]
    pub fn point(&self) -> u64 {
        self.0[..8].iter().fold(0, |point, byte| point << 8 | u64::from(*byte))
    }
}

impl FromStr for NodeHash {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let refused = || NameError::Hash(text.to_owned());
        if text.len() != HASH_DIGITS {
            return Err(refused());
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            *byte =
                nibble(pair[0]).ok_or_else(refused)? << 4 | nibble(pair[1]).ok_or_else(refused)?;
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for NodeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for NodeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Upper case is refused: one hash has one spelling.
fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

// === impl TransactionName ===

impl TransactionName {
    #[must_use]
    pub fn new(node: NodeHash, rv: ResourceVersion) -> Self {
        Self { node, rv }
    }

    #[must_use]
    pub fn node(&self) -> &NodeHash {
        &self.node
    }

    #[must_use]
    pub fn rv(&self) -> &ResourceVersion {
        &self.rv
    }
}

impl FromStr for TransactionName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let (node, rv) = text.split_once('.').ok_or_else(|| NameError::NoDot(text.to_owned()))?;
        let node = node.parse()?;
        let rv = rv.parse().map_err(|source| NameError::Rv { name: text.to_owned(), source })?;
        Ok(Self { node, rv })
    }
}

impl fmt::Display for TransactionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.node, self.rv)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKER_7: &str = "8aca0dd300d2436b96f9d412b7b1b00d8e2454988fc9ada5607c2436a5bfbfa1";

    /// What a ConfigMap's name may have.
    const NAME_CHARACTERS_MAX: usize = 253;

    #[test]
    fn transaction_name_is_sha256_dot_rv() {
        let name = TransactionName::new(NodeHash::of("worker-7"), "4122".parse().unwrap());
        assert_eq!(name.to_string(), format!("{WORKER_7}.4122"));
        assert_eq!(name.to_string().parse(), Ok(name));
    }

    #[test]
    fn the_longest_node_and_the_longest_rv_fit_into_a_name() {
        let node = NodeHash::of(&"n".repeat(253));
        let name = TransactionName::new(node, "9".repeat(188).parse().unwrap());
        assert_eq!(name.to_string().len(), NAME_CHARACTERS_MAX);
        assert_eq!(name.to_string().parse(), Ok(name));
    }

    #[test]
    fn other_names_are_foreign() {
        let error = |text: &str| text.parse::<TransactionName>().unwrap_err().to_string();
        assert!(error("kube-root-ca").contains("no dot"));
        assert!(error("kube-root-ca.crt").contains("hexadecimal"));
        assert!(error(&format!("{}.1", WORKER_7.to_uppercase())).contains("hexadecimal"));
        assert!(error(&format!("{}.1", &WORKER_7[1..])).contains("hexadecimal"));
        for rv in ["", "0", "01", "1.2", "x"] {
            assert!(error(&format!("{WORKER_7}.{rv}")).contains("resource version"), "{rv}");
        }
    }

    #[test]
    fn nodes_have_names_that_fit_into_a_path() {
        for name in ["a", "worker-7", "10.0.0.7", &["n"; 63].concat()] {
            assert!(is_node_name(name), "{name}");
        }
        for name in ["", "a b", "a/status", "a?b", "..", "Worker", "-a", &"n".repeat(254)] {
            assert!(!is_node_name(name), "{name}");
        }
    }

    #[test]
    fn a_point_is_the_start_of_its_hash() {
        assert_eq!(NodeHash::of("worker-7").point(), 0x8aca_0dd3_00d2_436b);
    }
}
