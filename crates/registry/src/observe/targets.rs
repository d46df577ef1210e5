//! What a new reading of a target means: our increase shows, or somebody else's, or ours does not.

use super::Round;
use crate::id::GroupId;
use crate::notice::FailureCode;
use crate::request::{Settling, adopt, lower};

// === impl Round ===

impl Round<'_> {
    pub(super) fn read_target(&mut self, group: &GroupId) {
        let Some(terms) = self.terms(group) else { return };
        let Some(memory) = self.state.groups.get_mut(group) else { return };
        memory.was_listed = true;
        let last = memory.target.replace(terms.target);
        let mut foreign = last.map_or(0, |last| terms.target.saturating_sub(last));
        if let Some(settling) = memory.own.as_mut().and_then(|own| own.settling.as_mut()) {
            let ours = foreign.min(settling.unseen);
            settling.unseen -= ours;
            foreign -= ours;
        }
        if self.state.adopts_gaps && last.is_none() {
            // Whoever asked for these is not remembered, so they are waited for.
            let coming = terms.missing().saturating_add(terms.counts.unregistered);
            foreign = coming.saturating_sub(terms.increase);
        }
        let baseline = last.unwrap_or(terms.target.saturating_sub(foreign));
        adopt(&mut memory.adopted, foreign, baseline, self.now);
        self.settle(group, terms.target);
    }

    /// An increase that its target does not show in time did not happen.
    fn settle(&mut self, group: &GroupId, target: u32) {
        let now = self.now;
        let Some(memory) = self.state.groups.get_mut(group) else { return };
        let Some(own) = memory.own.as_mut() else { return };
        let is_over = |it: &mut Settling| target >= it.expects || now >= it.until;
        let Some(Settling { expects, unseen, .. }) = own.settling.take_if(is_over) else { return };
        if target < expects && unseen > 0 {
            lower(&mut memory.own, unseen);
            let message = format!("the target of {group} is {target}, not {expects} as asked for");
            self.fail(group, FailureCode::TargetNotRaised, message, unseen);
        }
    }
}
