//! A Rust file as rules see it: code without comments, and which of it is for tests only.

use std::ops::Range;

use super::Finding;
use super::imports::imports;
use super::mask::mask;

/// Crates that test and measure; they may touch what the product may not.
const TOOLS: [&str; 4] = ["bench", "e2e", "fuzz", "xtask"];

/// Programs that show how to use the product, each a crate of its own.
const EXAMPLES: &str = "examples/";

/// Crates that decide and do nothing else.
const CORE_CRATES: [&str; 3] = ["fit", "mvcc", "registry"];

pub(super) struct SourceFile {
    pub(super) path: String,
    pub(super) text: String,
    code: String,
    imports: Vec<(usize, String)>,
    /// Whether all of it is for tests.
    is_test: bool,
    /// Lines (from 1) compiled for tests only.
    test_lines: Vec<Range<usize>>,
}

/// Which part of a file a rule looks at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Everything,
    /// What is compiled into the product: neither tests nor build scripts.
    Product,
    Tests,
}

/// Names that must not occur, each with what to do instead.
pub(super) struct Ban {
    pub(super) rule: &'static str,
    pub(super) scope: Scope,
    pub(super) names: &'static [(&'static str, &'static str)],
}

// === impl SourceFile ===

impl SourceFile {
    pub(super) fn new(path: &str, text: &str) -> Self {
        let code = mask(text);
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
            is_test: is_test_path(path),
            test_lines: test_lines(&code),
            imports: imports(&code),
            code,
        }
    }

    pub(super) fn crate_name(&self) -> &str {
        let below = ["crates/", EXAMPLES].iter().find_map(|folder| self.path.strip_prefix(folder));
        let below = below.unwrap_or(&self.path);
        below.split('/').next().unwrap_or(below)
    }

    /// The module path below the crate, file ending removed: `src/core/plan` for instance.
    pub(super) fn module_parts(&self) -> impl Iterator<Item = &str> {
        self.path.trim_end_matches(".rs").split('/')
    }

    pub(super) fn is_tool(&self) -> bool {
        TOOLS.contains(&self.crate_name()) || self.path.starts_with(EXAMPLES)
    }

    /// In a core crate, or in a module called `core` of a crate that is core and shell.
    pub(super) fn is_core(&self) -> bool {
        let has_core_module = self.path.starts_with("crates/")
            && self.module_parts().skip(2).any(|part| part == "core");
        CORE_CRATES.contains(&self.crate_name()) || has_core_module
    }

    /// The masked text: code only.
    pub(super) fn code(&self) -> &str {
        &self.code
    }

    /// Lines of code within the scope, numbered from 1.
    pub(super) fn lines(&self, scope: Scope) -> impl Iterator<Item = (usize, &str)> {
        let numbered = self.code.lines().enumerate().map(|(index, line)| (index + 1, line));
        numbered.filter(move |(line, _)| self.is_within(*line, scope))
    }

    pub(super) fn is_within(&self, line: usize, scope: Scope) -> bool {
        let is_test = self.is_test || self.test_lines.iter().any(|lines| lines.contains(&line));
        match scope {
            Scope::Everything => true,
            Scope::Product => !is_test && !self.path.ends_with("/build.rs"),
            Scope::Tests => is_test,
        }
    }

    /// Lines within the scope that mention `name`, spelled out or imported.
    fn mentions(&self, name: &str, scope: Scope) -> Vec<usize> {
        let spelled = self.lines(scope).filter(|(_, code)| mentions(code, name));
        let imported = self
            .imports
            .iter()
            .filter(|(line, path)| self.is_within(*line, scope) && mentions(path, name));
        let mut lines: Vec<usize> =
            spelled.map(|(line, _)| line).chain(imported.map(|(line, _)| *line)).collect();
        lines.sort_unstable();
        lines.dedup();
        lines
    }
}

// === impl Ban ===

impl Ban {
    pub(super) fn check(&self, file: &SourceFile) -> Vec<Finding> {
        let mut findings: Vec<Finding> = Vec::new();
        for (name, advice) in self.names {
            for line in file.mentions(name, self.scope) {
                // Overlapping names (`rand` and `rand::rng`) make one finding per line.
                if !findings.iter().any(|finding| finding.line == line) {
                    let advice = format!("`{name}`: {advice}");
                    findings.push(Finding::new(&file.path, line, self.rule, advice));
                }
            }
        }
        findings.sort_by_key(|finding| finding.line);
        findings
    }
}

/// Whether `code` holds `name` as whole words: `fs::write` is in `std::fs::write(`, not in
/// `vfs::write` or `fs::write_all`.
pub(super) fn mentions(code: &str, name: &str) -> bool {
    let is_name = |character: char| character.is_alphanumeric() || character == '_';
    code.match_indices(name).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + name.len()..].chars().next();
        let starts = !before.is_some_and(is_name) || !name.starts_with(is_name);
        let ends = !after.is_some_and(is_name) || !name.ends_with(is_name);
        starts && ends
    })
}

fn is_test_path(path: &str) -> bool {
    let below = path.strip_prefix(EXAMPLES).unwrap_or(path);
    let is_in = |folder: &str| below.split('/').any(|part| part == folder);
    is_in("tests") || is_in("benches") || is_in("examples") || path.ends_with("/tests.rs")
}

/// The lines of every item under `#[cfg(test)]`.
fn test_lines(code: &str) -> Vec<Range<usize>> {
    const MARK: &str = "#[cfg(test)]";
    let line_of = |at: usize| 1 + code[..at].matches('\n').count();
    let item_end = |start: usize| item_end(&code[start + MARK.len()..]) + start + MARK.len();
    let starts = code.match_indices(MARK).map(|(at, _)| at);
    starts.map(|start| line_of(start)..line_of(item_end(start)) + 1).collect()
}

/// Where the item at the start of `code` ends: at its `;`, or at the brace that closes it.
pub(super) fn item_end(code: &str) -> usize {
    let mut depth = 0_usize;
    for (at, character) in code.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth <= 1 => return at,
            '}' => depth -= 1,
            ';' if depth == 0 => return at,
            _ => {}
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "\
fn product() {}
#[cfg(test)]
mod tests {
    fn test() { {} }
}
fn product_again() {}
#[cfg(test)]
use a::b;
fn last() {}
";

    #[test]
    fn test_items_are_told_from_the_product() {
        let file = SourceFile::new("crates/a/src/lib.rs", CODE);
        let lines = |scope| file.lines(scope).map(|(line, _)| line).collect::<Vec<_>>();
        assert_eq!(lines(Scope::Product), [1, 6, 9]);
        assert_eq!(lines(Scope::Tests), [2, 3, 4, 5, 7, 8]);
    }

    #[test]
    fn test_files_are_told_by_their_place() {
        for path in ["crates/a/tests/it/main.rs", "crates/a/src/watch/tests.rs"] {
            let file = SourceFile::new(path, "fn f() {}");
            assert_eq!(file.lines(Scope::Product).count(), 0, "{path}");
        }
    }

    #[test]
    fn cores_are_crates_or_modules() {
        let is_core = |path| SourceFile::new(path, "").is_core();
        assert!(is_core("crates/mvcc/src/lib.rs"));
        assert!(is_core("crates/labels/src/core/plan.rs"));
        assert!(is_core("crates/labels/src/core.rs"));
        assert!(!is_core("crates/labels/src/shell.rs"));
        assert!(!is_core("crates/store/src/scored.rs"));
    }

    #[test]
    fn names_match_as_whole_words() {
        assert!(mentions("std::fs::write(path)", "fs::write"));
        assert!(!mentions("vfs::write(path)", "fs::write"));
        assert!(!mentions("fs::write_all(path)", "fs::write"));
        assert!(mentions("a.await?", ".await"));
    }

    #[test]
    fn a_ban_sees_through_imports_and_ignores_comments() {
        let ban = Ban { rule: "r", scope: Scope::Product, names: &[("env::var", "do not")] };
        let text = "use std::{env::var, fs};\n// env::var\nlet s = \"env::var\";\nenv::var(x);\n";
        let findings = ban.check(&SourceFile::new("crates/a/src/lib.rs", text));
        let lines: Vec<usize> = findings.iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [1, 4]);
    }
}
