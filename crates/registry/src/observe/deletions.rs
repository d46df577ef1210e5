//! Deletions that were handed to the provider: finished when the machine is no longer listed, given
//! up when they take too long. Neither is a failure.

use super::Round;
use crate::state::Deletion;

// === impl Round ===

impl Round<'_> {
    pub(super) fn settle_deletions(&mut self) {
        let (now, groups) = (self.now, &self.sifted.groups);
        self.state.deletions.retain(|instance, deletion: &mut Deletion| {
            let is_late = now >= deletion.deadline;
            let Some(reading) = groups.get(&deletion.group) else { return !is_late };
            let Ok(sizes) = &reading.sizes else { return true };
            deletion.is_overdue |= is_late;
            sizes.lists(instance)
        });
    }
}
