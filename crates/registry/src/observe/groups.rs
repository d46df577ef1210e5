//! Groups come, change and go.

use std::time::Duration;

use super::Round;
use crate::state::GroupMemory;
use crate::time::later;
use crate::view::GroupView;

/// How long a group that is no longer listed is remembered: listings have had holes before.
const VANISHED_KEPT: Duration = Duration::from_hours(1);

// === impl Round ===

impl Round<'_> {
    pub(super) fn meet_groups(&mut self) {
        for (id, reading) in &self.sifted.groups {
            let known = self.state.groups.entry(id.clone());
            let memory = known.or_insert_with(|| GroupMemory::new(reading.profile));
            memory.profile = reading.profile;
            memory.vanished = None;
            let (target, stale) = match &reading.sizes {
                Ok(sizes) => (Some(sizes.target), None),
                Err(reason) => (memory.target, Some(reason.clone())),
            };
            let view = GroupView { target, stale, ..GroupView::default() };
            self.view.groups.insert(id.clone(), view);
        }
        self.miss_groups();
    }

    /// What is not listed keeps its request and its backoff for a while, and nothing else.
    fn miss_groups(&mut self) {
        let (now, times) = (self.now, &self.config.backoff);
        let groups = &self.sifted.groups;
        for (_, memory) in self.state.groups.iter_mut().filter(|(id, _)| !groups.contains_key(*id))
        {
            memory.vanished.get_or_insert(now);
            (memory.size, memory.revert) = (None, 0);
        }
        for memory in self.state.groups.values_mut() {
            memory.backoff.take_if(|backoff| backoff.is_forgotten(now, times));
        }
        let is_kept = |since| now < later(since, VANISHED_KEPT);
        self.state.groups.retain(|_, memory| memory.vanished.is_none_or(is_kept));
    }
}
