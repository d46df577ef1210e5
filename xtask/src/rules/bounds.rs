//! Absence 7: every queue, buffer and retry has a named bound.
//!
//! Queues can be told from text: an unbounded one by its constructor, an unnamed bound by the
//! number in its place. Buffers and retries are for review.

use super::Finding;
use super::source::{Ban, Scope, SourceFile};

pub(super) const RULE: &str = "bounds";

const ADVICE: &str = "give the queue a bound: `channel(NAMED_BOUND)`";

const BAN: Ban = Ban {
    rule: RULE,
    scope: Scope::Everything,
    names: &[
        ("unbounded_channel", ADVICE),
        ("UnboundedSender", ADVICE),
        ("UnboundedReceiver", ADVICE),
        ("mpsc::unbounded", ADVICE),
        ("crossbeam_channel::unbounded", ADVICE),
        ("channel::unbounded", ADVICE),
        ("std::sync::mpsc::channel", ADVICE),
    ],
};

/// Constructors whose argument is the bound.
const BOUNDED: [&str; 4] = ["channel(", "bounded(", "sync_channel(", "Semaphore::new("];

pub(super) fn check(file: &SourceFile) -> Vec<Finding> {
    let mut findings = BAN.check(file);
    let unnamed = file.lines(Scope::Product).filter(|(_, code)| has_number_as_bound(code));
    findings.extend(unnamed.map(|(line, _)| {
        Finding::new(&file.path, line, RULE, "give the bound a name and its reason: a constant")
    }));
    findings
}

/// A queue of one slot is a hand-over, not a buffer whose size someone chose. Methods of the same
/// name construct nothing.
fn has_number_as_bound(code: &str) -> bool {
    BOUNDED.iter().any(|constructor| {
        let calls = code.match_indices(constructor);
        let mut constructions = calls.filter(|(at, _)| !code[..*at].ends_with('.'));
        constructions.any(|(at, _)| {
            let argument = code[at + constructor.len()..].split([')', ',']).next().unwrap_or("");
            argument.starts_with(|c: char| c.is_ascii_digit()) && argument != "1"
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        check(&SourceFile::new(path, text)).len()
    }

    #[test]
    fn unbounded_queues_are_nowhere_not_even_in_tests() {
        assert_eq!(count("crates/store/src/a.rs", "tokio::sync::mpsc::unbounded_channel()"), 1);
        assert_eq!(count("crates/store/tests/it/a.rs", "use std::sync::mpsc::channel;"), 1);
        assert_eq!(count("crates/store/src/a.rs", "crossbeam_channel::unbounded()"), 1);
    }

    #[test]
    fn bounds_have_names() {
        assert_eq!(count("crates/store/src/a.rs", "mpsc::channel(1024)"), 1);
        assert_eq!(count("crates/store/src/a.rs", "crossbeam_channel::bounded::<u8>(X)"), 0);
        assert_eq!(count("crates/store/src/a.rs", "mpsc::channel(WATCH_QUEUE_MAX)"), 0);
        assert_eq!(count("crates/store/src/a.rs", "mpsc::channel(1)"), 0);
        assert_eq!(count("crates/store/src/a.rs", "pool.channel(3)"), 0);
        assert_eq!(count("crates/store/tests/it/a.rs", "mpsc::channel(16)"), 0);
    }
}
