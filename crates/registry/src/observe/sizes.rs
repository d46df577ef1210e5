//! How long a group has the wrong size. A fixed number of nodes that stays missing will not come.

use jiff::Timestamp;

use super::Round;
use crate::id::GroupId;
use crate::notice::FailureCode;
use crate::state::{GroupMemory, SizeRecord};
use crate::terms::Terms;
use crate::time::{later, words};

// === impl Round ===

impl Round<'_> {
    pub(super) fn check_size(&mut self, group: &GroupId) {
        let Some(terms) = self.terms(group) else { return };
        let Some(memory) = self.state.groups.get_mut(group) else { return };
        if terms.missing() == 0 {
            memory.revert = 0;
        }
        let pair = (terms.counts.registered(), terms.target);
        let kept = memory.size.filter(|size| (size.registered, size.target) == pair);
        let is_told = memory.revert > 0 || kept.is_some_and(|size| size.is_told);
        let since = kept.map_or(self.now, |size| size.since);
        let (registered, target) = pair;
        let record = SizeRecord { registered, target, since, is_told };
        memory.size = terms.is_wrong_size().then_some(record);
        self.tell_missing(group, &terms);
    }

    fn tell_missing(&mut self, group: &GroupId, terms: &Terms) {
        let Some(memory) = self.state.groups.get_mut(group) else { return };
        let uncovered = overdue(memory, terms, self.now);
        let Some(size) = memory.size.as_mut().filter(|size| uncovered > 0 && !size.is_told) else {
            return;
        };
        size.is_told = true;
        let missing_for = words(memory.profile.times.provision);
        let message = format!("{uncovered} nodes of {group} are missing for {missing_for}");
        self.fail(group, FailureCode::MissingNodes, message, uncovered);
    }
}

/// What is missing for so long that it is given up, but for what an open request waits for.
pub(super) fn overdue(memory: &GroupMemory, terms: &Terms, now: Timestamp) -> u32 {
    let is_old = |size: &SizeRecord| now >= later(size.since, memory.profile.times.provision);
    match memory.size.filter(is_old) {
        Some(_) => terms.missing().saturating_sub(terms.increase),
        None => 0,
    }
}
