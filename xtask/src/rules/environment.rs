//! Absence 4: only the binary reads arguments, environment and configuration; only it prints.

use super::Finding;
use super::source::{Ban, Scope, SourceFile};

pub(super) const RULE: &str = "environment";

const READ: &str = "take it as an option; the binary reads the environment";
const PRINT: &str = "return it, or log it with `tracing`; the binary prints";

const BAN: Ban = Ban {
    rule: RULE,
    scope: Scope::Product,
    names: &[
        ("std::env", READ),
        ("env::var", READ),
        ("env::var_os", READ),
        ("env::vars", READ),
        ("env::args", READ),
        ("env::current_dir", READ),
        ("option_env!", READ),
        ("println!", PRINT),
        ("print!", PRINT),
        ("eprintln!", PRINT),
        ("eprint!", PRINT),
        ("io::stdout", PRINT),
        ("io::stderr", PRINT),
    ],
};

pub(super) fn check(file: &SourceFile) -> Vec<Finding> {
    if file.is_tool() || file.crate_name() == "windlass" { Vec::new() } else { BAN.check(file) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        check(&SourceFile::new(path, text)).len()
    }

    #[test]
    fn libraries_neither_read_the_environment_nor_print() {
        assert_eq!(count("crates/store/src/a.rs", "std::env::var(\"X\")"), 1);
        assert_eq!(count("crates/store/src/a.rs", "use std::{env, fs};"), 1);
        assert_eq!(count("crates/store/src/a.rs", "eprintln!(\"x\");"), 1);
        assert_eq!(count("crates/store/src/a.rs", "env!(\"CARGO_PKG_VERSION\")"), 0);
    }

    #[test]
    fn the_binary_and_build_scripts_may() {
        assert_eq!(count("crates/windlass/src/main.rs", "println!(\"x\");"), 0);
        assert_eq!(count("crates/etcd-api/build.rs", "println!(\"x\");"), 0);
    }
}
