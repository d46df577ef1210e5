//! Unfinished work carries an issue number, and code that only promises does not compile.

use super::Finding;
use super::source::mentions;
use crate::checkout::TextFile;

pub(super) const RULE: &str = "todo";

/// Spelled in pieces, because this file is read by its own rule.
const MARK: &str = concat!("TO", "DO");
const OTHER_MARKS: [&str; 4] = [
    concat!("FIX", "ME"),
    concat!("X", "XX"),
    concat!("to", "do!("),
    concat!("unimpl", "emented!("),
];

pub(super) fn check(file: &TextFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        if let Some(advice) = judge(line) {
            findings.push(Finding::new(&file.path, index + 1, RULE, advice));
        }
    }
    findings
}

fn judge(line: &str) -> Option<String> {
    if let Some(mark) = OTHER_MARKS.into_iter().find(|mark| mentions(line, mark)) {
        return Some(format!("`{mark}`: finish it, or write `{MARK}(#42)` with an issue"));
    }
    let is_numbered = line.split(MARK).skip(1).all(|rest| {
        let number = rest.strip_prefix("(#").unwrap_or("");
        number.starts_with(|c: char| c.is_ascii_digit())
    });
    (mentions(line, MARK) && !is_numbered).then(|| format!("write `{MARK}(#42)` with an issue"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_without_a_number_is_found() {
        assert!(judge(&format!("// {MARK}: later")).is_some());
        assert!(judge(&format!("// {MARK}(me): later")).is_some());
        assert!(judge(&format!("    {}\"later\")", OTHER_MARKS[2])).is_some());
        assert!(judge(&format!("// {MARK}(#42): bound the queue")).is_none());
        assert!(judge("let method = 1; // nothing left").is_none());
    }
}
