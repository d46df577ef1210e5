//! Counts suites and says what became of each.

use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Passed,
    Failed,
    /// Could not run here, for this reason.
    Skipped(String),
}

pub(super) struct Report {
    /// Under continuous integration a skipped suite is a failed one.
    is_ci: bool,
    suites: Vec<(&'static str, Outcome)>,
}

// === impl Report ===

impl Report {
    pub(super) fn new(is_ci: bool) -> Self {
        Self { is_ci, suites: Vec::new() }
    }

    pub(super) fn add(&mut self, suite: &'static str, outcome: Outcome) {
        self.suites.push((suite, outcome));
    }

    pub(super) fn is_good(&self) -> bool {
        self.failed() == 0
    }

    fn failed(&self) -> usize {
        self.count(|outcome| self.is_failure(outcome))
    }

    fn is_failure(&self, outcome: &Outcome) -> bool {
        match outcome {
            Outcome::Passed => false,
            Outcome::Failed => true,
            Outcome::Skipped(_) => self.is_ci,
        }
    }

    fn count(&self, is_counted: impl Fn(&Outcome) -> bool) -> usize {
        self.suites.iter().filter(|(_, outcome)| is_counted(outcome)).count()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (suite, outcome) in &self.suites {
            match outcome {
                Outcome::Passed => writeln!(f, "passed   {suite}")?,
                Outcome::Failed => writeln!(f, "failed   {suite}")?,
                Outcome::Skipped(reason) if self.is_ci => {
                    writeln!(f, "failed   {suite}: cannot run here: {reason}")?;
                }
                Outcome::Skipped(reason) => writeln!(f, "skipped  {suite}: {reason}")?,
            }
        }
        let passed = self.count(|outcome| *outcome == Outcome::Passed);
        let failed = self.failed();
        let skipped = self.suites.len() - passed - failed;
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(is_ci: bool, is_good: bool, expected: Expect) {
        let mut report = Report::new(is_ci);
        report.add("verify", Outcome::Passed);
        report.add("e2e", Outcome::Skipped("etcd-3.7.1: no Go".to_owned()));
        assert_eq!(report.is_good(), is_good);
        expected.assert_eq(&report.to_string());
    }

    #[test]
    fn a_skip_is_named_with_its_reason() {
        check(
            false,
            true,
            expect![[r#"
                passed   verify
                skipped  e2e: etcd-3.7.1: no Go
                1 passed, 0 failed, 1 skipped"#]],
        );
    }

    #[test]
    fn under_continuous_integration_what_cannot_run_has_failed() {
        check(
            true,
            false,
            expect![[r#"
                passed   verify
                failed   e2e: cannot run here: etcd-3.7.1: no Go
                1 passed, 1 failed, 0 skipped"#]],
        );
    }

    #[test]
    fn one_failure_is_enough() {
        let mut report = Report::new(false);
        report.add("verify", Outcome::Failed);
        report.add("workspace", Outcome::Passed);
        assert!(!report.is_good());
    }
}
