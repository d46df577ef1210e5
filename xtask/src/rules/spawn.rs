//! Absence 8: no spawned task is detached; only modules called `lifecycle` spawn.

use super::Finding;
use super::source::{Ban, Scope, SourceFile};

pub(super) const RULE: &str = "spawn";

const ADVICE: &str = "spawn in the crate's `lifecycle` module, which owns the task and its end";

const BAN: Ban = Ban {
    rule: RULE,
    scope: Scope::Product,
    names: &[
        ("tokio::spawn", ADVICE),
        ("task::spawn", ADVICE),
        ("tokio::task::spawn_local", ADVICE),
        ("thread::spawn", ADVICE),
        ("thread::Builder", ADVICE),
    ],
};

pub(super) fn check(file: &SourceFile) -> Vec<Finding> {
    let is_lifecycle = file.module_parts().any(|part| part == "lifecycle");
    if is_lifecycle || file.is_tool() { Vec::new() } else { BAN.check(file) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        check(&SourceFile::new(path, text)).len()
    }

    #[test]
    fn only_lifecycle_spawns() {
        assert_eq!(count("crates/store/src/a.rs", "tokio::spawn(async {});"), 1);
        assert_eq!(count("crates/store/src/a.rs", "use std::thread::Builder;"), 1);
        assert_eq!(count("crates/store/src/a.rs", "tokio::task::spawn(work);"), 1);
        assert_eq!(count("crates/store/src/lifecycle.rs", "std::thread::spawn(f);"), 0);
        assert_eq!(count("crates/store/src/a.rs", "#[cfg(test)]\nmod t { tokio::spawn(f); }"), 0);
        assert_eq!(count("crates/store/src/a.rs", "tasks.spawn(work);"), 0);
    }
}
