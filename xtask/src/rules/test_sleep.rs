//! No tokio `sleep` in tests, unless tokio's clock is paused and sleeping costs nothing.

use super::Finding;
use super::source::{Scope, SourceFile, item_end, mentions};

pub(super) const RULE: &str = "test-sleep";

const ADVICE: &str = "poll a level with `wait_for`, or pause tokio's clock";

pub(super) fn check(file: &SourceFile) -> Vec<Finding> {
    let paused = paused_lines(file.code());
    let is_paused = |line: usize| paused.iter().any(|lines| lines.contains(&line));
    let sleeps = file.lines(Scope::Everything).filter(|(line, code)| {
        is_test(file, *line) && mentions(code, "sleep") && code.contains("sleep(")
    });
    let awake = sleeps.filter(|(line, _)| !is_paused(*line));
    awake.map(|(line, _)| Finding::new(&file.path, line, RULE, ADVICE)).collect()
}

/// The harness of `e2e` runs inside tests, wherever its code lies.
fn is_test(file: &SourceFile, line: usize) -> bool {
    file.crate_name() == "e2e" || file.is_within(line, Scope::Tests)
}

/// The lines of functions that run with a paused clock.
fn paused_lines(code: &str) -> Vec<std::ops::Range<usize>> {
    let line_of = |at: usize| 1 + code[..at].matches('\n').count();
    let marks = code.match_indices("start_paused").filter_map(|(at, _)| {
        let attribute_end = at + code[at..].find(']')?;
        Some(line_of(at)..line_of(attribute_end + item_end(&code[attribute_end..])) + 1)
    });
    let mut paused: Vec<_> = marks.collect();
    if mentions(code, "time::pause") {
        paused.push(1..usize::MAX);
    }
    paused
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&SourceFile::new(path, text)).iter().map(|finding| finding.line).collect()
    }

    const TESTS: &str = "\
#[tokio::test]
async fn awake() {
    tokio::time::sleep(SECOND).await;
}
#[tokio::test(start_paused = true)]
async fn paused() {
    sleep(SECOND).await;
}
async fn driver() {
    sleep(SECOND).await;
}
";

    #[test]
    fn only_a_paused_test_may_sleep() {
        assert_eq!(lines("crates/store/tests/it/a.rs", TESTS), [3, 10]);
        assert_eq!(lines("crates/store/src/a.rs", TESTS), [] as [usize; 0]);
        assert_eq!(lines("crates/e2e/src/a.rs", TESTS), [3, 10]);
    }
}
