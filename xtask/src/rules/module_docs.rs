//! Every module opens with what it owns and what it never does.

use super::Finding;
use super::source::SourceFile;

pub(super) const RULE: &str = "module-docs";

pub(super) fn check(file: &SourceFile) -> Vec<Finding> {
    let is_exempt = file.path.ends_with("/tests.rs") || file.path.ends_with("/build.rs");
    if is_exempt || opens_with_words(&file.text) {
        return Vec::new();
    }
    let advice = "open with `//!`: what the module owns, and what it never does";
    vec![Finding::new(&file.path, 1, RULE, advice)]
}

fn opens_with_words(text: &str) -> bool {
    let first_line = text.trim_start().lines().next().unwrap_or("");
    first_line.strip_prefix("//!").is_some_and(|words| !words.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_without_opening_words_is_found() {
        let count = |path, text| check(&SourceFile::new(path, text)).len();
        assert_eq!(count("crates/a/src/b.rs", "//! Owns b.\nfn b() {}"), 0);
        assert_eq!(count("crates/a/src/b.rs", "fn b() {}"), 1);
        assert_eq!(count("crates/a/src/b.rs", "//! \n"), 1);
        assert_eq!(count("crates/a/src/tests.rs", "fn b() {}"), 0);
    }
}
