//! Absence 3: cores have no `async fn` and never name `kube::Client`.

use super::Finding;
use super::source::{Ban, Scope, SourceFile};

pub(super) const RULE: &str = "core-purity";

const SYNCHRONOUS: &str = "a core is synchronous: return a decision and let the shell wait";
const NO_CLIENT: &str = "a core talks to nobody: take what was read as an argument";

const BAN: Ban = Ban {
    rule: RULE,
    scope: Scope::Product,
    names: &[
        ("async", SYNCHRONOUS),
        (".await", SYNCHRONOUS),
        ("tokio", SYNCHRONOUS),
        ("futures", SYNCHRONOUS),
        ("kube::Client", NO_CLIENT),
        ("kube::Api", NO_CLIENT),
        ("std::net", NO_CLIENT),
        ("std::process", NO_CLIENT),
    ],
};

pub(super) fn check(file: &SourceFile) -> Vec<Finding> {
    if file.is_core() { BAN.check(file) } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        check(&SourceFile::new(path, text)).len()
    }

    #[test]
    fn cores_wait_for_nothing_and_call_nobody() {
        assert_eq!(count("crates/mvcc/src/a.rs", "pub async fn get() {}"), 1);
        assert_eq!(count("crates/labels/src/core/a.rs", "use kube::{Api, Client};"), 1);
        assert_eq!(count("crates/registry/src/a.rs", "use tokio::sync::mpsc;"), 1);
        assert_eq!(count("crates/labels/src/shell.rs", "pub async fn run() {}"), 0);
        assert_eq!(count("crates/mvcc/src/a.rs", "// async fn in words"), 0);
    }
}
