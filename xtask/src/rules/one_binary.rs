//! `cargo run` in the workspace means windlass, as the README says: no other crate has a binary.

use super::Finding;
use crate::checkout::TextFile;

pub(super) const RULE: &str = "one-binary";

pub(super) fn check(file: &TextFile) -> Vec<Finding> {
    let Some((name, place)) =
        file.path.strip_prefix("crates/").and_then(|below| below.split_once('/'))
    else {
        return Vec::new();
    };
    let is_binary = place == "src/main.rs" || place.starts_with("src/bin/");
    if name == "windlass" || !is_binary {
        return Vec::new();
    }
    let advice = "a second binary makes `cargo run` ambiguous; make it an example";
    vec![Finding::new(&file.path, 1, RULE, advice)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str) -> usize {
        check(&TextFile { path: path.to_owned(), text: String::new() }).len()
    }

    #[test]
    fn only_windlass_is_run() {
        assert_eq!(count("crates/bench/src/bin/ceiling.rs"), 1);
        assert_eq!(count("crates/bench/src/main.rs"), 1);
        assert_eq!(count("crates/windlass/src/main.rs"), 0);
        assert_eq!(count("crates/bench/examples/ceiling.rs"), 0);
        assert_eq!(count("xtask/src/main.rs"), 0);
    }
}
