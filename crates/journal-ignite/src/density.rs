//! Holds that HISTORY has no holes but those that were made on purpose. Only decides.

use mvcc::{Position, Revision};

use crate::Error;

/// What a reader of HISTORY expects next.
///
/// For example with revisions up to 4 forgotten: whatever comes up to there is right, then (5, 0)
/// must follow, then (5, 1) or (6, 0).
#[derive(Debug)]
pub(crate) struct Density {
    forgotten: Revision,
    /// The revision that must begin next.
    next: Revision,
    /// The change that may follow inside the revision that has begun.
    within: Option<Position>,
}

// === impl Density ===

impl Density {
    /// Of a reader that begins at `from`, where nothing above `forgotten` may be missing.
    pub(crate) fn new(from: Revision, forgotten: Revision) -> Self {
        Self { forgotten, next: from.max(forgotten.next()), within: None }
    }

    /// Takes in the next change.
    pub(crate) fn see(&mut self, at: Position) -> Result<(), Error> {
        if at.revision <= self.forgotten {
            return Ok(());
        }
        let is_right = at == Position::first_of(self.next) || Some(at) == self.within;
        if !is_right {
            return Err(self.missing(at));
        }
        self.next = at.revision.next();
        self.within = Some(Position::new(at.revision, at.sub + 1));
        Ok(())
    }

    /// Nothing follows, and `last` is the newest revision there is.
    pub(crate) fn end(&self, last: Revision) -> Result<(), Error> {
        if self.next <= last { Err(Error::MissingRevision { revision: self.next }) } else { Ok(()) }
    }

    /// A change that is missing inside a revision is told by that revision.
    fn missing(&self, found: Position) -> Error {
        let begun = Revision(self.next.0 - 1);
        let is_within = found.revision == begun || (found.revision == self.next && found.sub > 0);
        Error::MissingRevision { revision: if is_within { found.revision } else { self.next } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The revision that is missing, if one is.
    fn check(from: i64, forgotten: i64, seen: &[(i64, u32)], last: i64) -> Option<i64> {
        let mut density = Density::new(Revision(from), Revision(forgotten));
        let mut seen = seen.iter().map(|(revision, sub)| Position::new(Revision(*revision), *sub));
        let outcome = seen.try_for_each(|at| density.see(at));
        let outcome = outcome.and_then(|()| density.end(Revision(last)));
        match outcome {
            Ok(()) => None,
            Err(Error::MissingRevision { revision }) => Some(revision.0),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn every_revision_above_what_was_forgotten_must_be_there() {
        assert_eq!(check(0, 1, &[(2, 0), (2, 1), (3, 0)], 3), None);
        assert_eq!(check(0, 1, &[], 1), None);
        assert_eq!(check(0, 1, &[(3, 0)], 3), Some(2));
        assert_eq!(check(0, 1, &[(2, 0), (4, 0)], 4), Some(3));
        assert_eq!(check(0, 1, &[(2, 0)], 3), Some(3));
        assert_eq!(check(0, 1, &[], 2), Some(2));
    }

    #[test]
    fn a_change_missing_inside_a_revision_names_it() {
        assert_eq!(check(0, 1, &[(2, 1)], 2), Some(2));
        assert_eq!(check(0, 1, &[(2, 0), (2, 2)], 2), Some(2));
    }

    #[test]
    fn what_was_forgotten_may_be_there_or_not() {
        assert_eq!(check(0, 5, &[(2, 3), (4, 0), (6, 0)], 6), None);
        assert_eq!(check(0, 5, &[], 5), None);
        assert_eq!(check(0, 5, &[(4, 0)], 6), Some(6));
    }

    #[test]
    fn a_reader_that_begins_later_misses_nothing_before() {
        assert_eq!(check(4, 1, &[(4, 0), (5, 0)], 5), None);
        assert_eq!(check(4, 1, &[(5, 0)], 5), Some(4));
        assert_eq!(check(9, 1, &[], 5), None);
    }
}
