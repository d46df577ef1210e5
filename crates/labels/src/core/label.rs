//! Which keys and values Kubernetes takes as labels.

/// A key's name, and a value.
const NAME_CHARACTERS_MAX: usize = 63;

/// A key's prefix: a DNS subdomain.
const PREFIX_CHARACTERS_MAX: usize = 253;

#[must_use]
pub fn is_legal(key: &str, value: &str) -> bool {
    let (prefix, name) =
        key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    prefix.is_none_or(is_subdomain) && is_name(name) && (value.is_empty() || is_name(value))
}

fn is_name(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    text.len() <= NAME_CHARACTERS_MAX
        && text.bytes().all(is_inner)
        && has_ends(text, |byte| byte.is_ascii_alphanumeric())
}

/// What the prefix of a key is, and the name of a node.
pub(super) fn is_subdomain(text: &str) -> bool {
    let is_end = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_part = |part: &str| {
        part.bytes().all(|byte| is_end(byte) || byte == b'-') && has_ends(part, is_end)
    };
    text.len() <= PREFIX_CHARACTERS_MAX && text.split('.').all(is_part)
}

/// Whether the text has a first and a last byte, and both are as asked.
fn has_ends(text: &str, is_end: impl Fn(u8) -> bool) -> bool {
    let ends = text.bytes().next().zip(text.bytes().next_back());
    ends.is_some_and(|(first, last)| is_end(first) && is_end(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_names_with_or_without_a_prefix() {
        for key in ["a", "A-b_c.9", "example.com/a", "a-1.b/C", "node-role.kubernetes.io/master"] {
            assert!(is_legal(key, "x"), "{key}");
        }
        for key in ["", "-a", "a-", "a b", "/a", "a/", "a/b/c", "Ex.com/a", "a..b/c", "a_b/c", "é"]
        {
            assert!(!is_legal(key, "x"), "{key}");
        }
    }

    #[test]
    fn lengths_are_bounded() {
        assert!(is_legal(&format!("{}/{}", "p".repeat(253), "n".repeat(63)), &"v".repeat(63)));
        assert!(!is_legal(&format!("{}/n", "p".repeat(254)), ""));
        assert!(!is_legal(&"n".repeat(64), ""));
        assert!(!is_legal("n", &"v".repeat(64)));
    }

    #[test]
    fn values_may_be_empty() {
        assert!(is_legal("a", ""));
        assert!(!is_legal("a", "not legal!"));
        assert!(!is_legal("a", "x/y"));
    }
}
