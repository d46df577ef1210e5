//! Labels as keys of a ConfigMap, for people who read them there: `/` is written `---SLASH---`.
//!
//! A mirror for most labels and not for all. Records written by hand or by an earlier
//! implementation have nothing else, so it is also read.

use std::collections::BTreeMap;

use super::{keys::RESERVED, object::Labels};

pub const SLASH_TOKEN: &str = "---SLASH---";

/// What a ConfigMap allows.
const KEY_CHARACTERS_MAX: usize = 253;

/// The labels that a ConfigMap's keys can hold so that reading gives them back.
#[must_use]
pub fn encode(labels: &Labels) -> BTreeMap<String, String> {
    let fitting = labels.iter().filter_map(|(key, value)| Some((encode_key(key)?, value.clone())));
    fitting.collect()
}

/// All keys but the reserved ones.
#[must_use]
pub fn decode(data: &BTreeMap<String, String>) -> Labels {
    let labels = data.iter().filter(|(key, _)| !RESERVED.contains(&key.as_str()));
    labels.map(|(key, value)| (key.replace(SLASH_TOKEN, "/"), value.clone())).collect()
}

fn encode_key(key: &str) -> Option<String> {
    let encoded = key.replace('/', SLASH_TOKEN);
    let is_legal =
        encoded.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    let is_fit = is_legal
        && !key.is_empty()
        && !key.starts_with('.')
        && !key.contains(SLASH_TOKEN)
        && encoded.len() <= KEY_CHARACTERS_MAX
        && !RESERVED.contains(&encoded.as_str());
    is_fit.then_some(encoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(keys: &[&str]) -> Labels {
        keys.iter().map(|key| ((*key).to_owned(), "x".to_owned())).collect()
    }

    #[test]
    fn slash_keys_round_trip() {
        let all = labels(&["team/tier", "kubernetes.io/os", "plain", "a.b-c_d/e"]);
        let flat = encode(&all);
        assert!(flat.contains_key("team---SLASH---tier"));
        assert_eq!(decode(&flat), all);
    }

    #[test]
    fn reg07_label_named_like_control_key() {
        for reserved in RESERVED {
            assert_eq!(encode(&labels(&[reserved])), BTreeMap::new(), "{reserved}");
        }
        assert_eq!(decode(&labels(&["type", "label_version", "rack"])), labels(&["rack"]));
    }

    #[test]
    fn keys_that_would_not_come_back_stay_out() {
        assert_eq!(encode(&labels(&["a---SLASH---b", "..", ""])), BTreeMap::new());
        let longest = format!("{}/{}", "p".repeat(253), "n".repeat(63));
        assert_eq!(encode(&labels(&[&longest])), BTreeMap::new());
        let fits = format!("{}/{}", "p".repeat(253 - 11 - 63), "n".repeat(63));
        assert_eq!(decode(&encode(&labels(&[&fits]))), labels(&[&fits]));
    }
}
