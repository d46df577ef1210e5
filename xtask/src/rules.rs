//! What is absent on purpose, and the habits a compiler does not hold: one small rule per file.
//!
//! A rule reads text and names places; it never runs anything and never changes a file. Every
//! finding says what to do instead. What may stand out of line is listed, with its reason, in
//! [`exceptions`].

mod bounds;
mod clock;
mod core_purity;
mod dependencies;
mod environment;
mod exceptions;
mod grpc_status;
mod house_words;
mod imports;
mod mask;
mod module_docs;
mod names;
mod one_binary;
mod source;
mod spawn;
mod storage;
mod test_sleep;
mod todo;
mod unused;
mod workspace_lints;

use std::fmt;

use anyhow::Result;

use self::exceptions::EXCEPTIONS;
use self::source::SourceFile;
use crate::checkout::{Checkout, Package, TextFile};

/// One place that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    path: String,
    line: usize,
    rule: &'static str,
    advice: String,
}

/// A rule, by its name in the table of results.
pub(crate) struct Rule {
    pub(crate) name: &'static str,
    pub(crate) claim: &'static str,
    check: Check,
}

/// What a rule reads.
enum Check {
    Source(fn(&SourceFile) -> Vec<Finding>),
    Text(fn(&TextFile) -> Vec<Finding>),
    Packages(fn(&[Package]) -> Vec<Finding>),
    /// Several of these together.
    Everything(fn(&Material) -> Vec<Finding>),
}

/// Everything rules read, loaded once.
pub(crate) struct Material {
    texts: Vec<TextFile>,
    sources: Vec<SourceFile>,
    packages: Vec<Package>,
}

pub(crate) const RULES: &[Rule] = &[
    Rule {
        name: dependencies::RULE,
        claim: "crates depend downwards only",
        check: Check::Packages(dependencies::check),
    },
    Rule {
        name: unused::RULE,
        claim: "what is declared is used",
        check: Check::Everything(unused::check),
    },
    Rule {
        name: storage::RULE,
        claim: "absence 1: only journals keep state on a disk",
        check: Check::Source(storage::check),
    },
    Rule {
        name: grpc_status::RULE,
        claim: "absence 2: only gRPC edges know `tonic::Status`",
        check: Check::Source(grpc_status::check),
    },
    Rule {
        name: core_purity::RULE,
        claim: "absence 3: cores are synchronous and know no client",
        check: Check::Source(core_purity::check),
    },
    Rule {
        name: environment::RULE,
        claim: "absence 4: only the binary reads the environment and prints",
        check: Check::Source(environment::check),
    },
    Rule {
        name: clock::RULE,
        claim: "absence 5: no core reads a clock or a random source",
        check: Check::Source(clock::check),
    },
    Rule {
        name: names::RULE,
        claim: "absence 6: names say what a module is for",
        check: Check::Source(names::check),
    },
    Rule {
        name: bounds::RULE,
        claim: "absence 7: every queue has a named bound",
        check: Check::Source(bounds::check),
    },
    Rule {
        name: spawn::RULE,
        claim: "absence 8: only `lifecycle` modules spawn",
        check: Check::Source(spawn::check),
    },
    Rule {
        name: test_sleep::RULE,
        claim: "no tokio sleep in unpaused tests",
        check: Check::Source(test_sleep::check),
    },
    Rule {
        name: one_binary::RULE,
        claim: "`cargo run` means windlass",
        check: Check::Text(one_binary::check),
    },
    Rule {
        name: workspace_lints::RULE,
        claim: "every crate takes the workspace's lints",
        check: Check::Text(workspace_lints::check),
    },
    Rule {
        name: module_docs::RULE,
        claim: "every module says what it owns",
        check: Check::Source(module_docs::check),
    },
    Rule {
        name: todo::RULE,
        claim: "unfinished work carries an issue number",
        check: Check::Text(todo::check),
    },
    Rule {
        name: house_words::RULE,
        claim: "no path of one machine, no host but documentation",
        check: Check::Text(house_words::check),
    },
];

// === impl Finding ===

impl Finding {
    fn new(path: &str, line: usize, rule: &'static str, advice: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, rule, advice: advice.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.path, self.line, self.rule, self.advice)
    }
}

// === impl Material ===

impl Material {
    pub(crate) fn load(checkout: &Checkout) -> Result<Self> {
        let texts = checkout.text_files()?;
        let rust = texts.iter().filter(|file| file.path.ends_with(".rs"));
        let sources = rust.map(|file| SourceFile::new(&file.path, &file.text)).collect();
        Ok(Self { sources, packages: checkout.packages()?, texts })
    }
}

// === impl Rule ===

impl Rule {
    /// The rule's findings, without those that are excepted with a reason.
    ///
    /// An exception that excepts nothing is itself a finding: the list must not outlive its cause.
    pub(crate) fn apply(&self, material: &Material) -> Vec<Finding> {
        let mut findings = match self.check {
            Check::Source(check) => material.sources.iter().flat_map(check).collect(),
            Check::Text(check) => material.texts.iter().flat_map(check).collect(),
            Check::Packages(check) => check(&material.packages),
            Check::Everything(check) => check(material),
        };
        for exception in EXCEPTIONS.iter().filter(|exception| exception.rule == self.name) {
            let before = findings.len();
            findings.retain(|finding: &Finding| !exception.covers(&finding.path));
            if findings.len() == before {
                findings.push(exception.as_stale());
            }
        }
        findings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_reads_like_a_compiler_message() {
        let finding = Finding::new("crates/a/src/lib.rs", 7, "spawn", "spawn in `lifecycle`");
        assert_eq!(finding.to_string(), "crates/a/src/lib.rs:7: spawn: spawn in `lifecycle`");
    }

    #[test]
    fn every_exception_belongs_to_a_rule() {
        for exception in EXCEPTIONS {
            assert!(RULES.iter().any(|rule| rule.name == exception.rule), "{}", exception.rule);
        }
    }
}
