//! Requests end: done when all their nodes have come, failed when their time is over.

use super::Round;
use crate::class::Class;
use crate::id::GroupId;
use crate::notice::{EventReason, FailureCode};
use crate::request::Request;
use crate::state::count;
use crate::terms::Terms;
use crate::time::{elapsed, upstream_words};

// === impl Round ===

impl Round<'_> {
    pub(super) fn close_requests(&mut self, group: &GroupId) {
        let Some(terms) = self.terms(group) else { return };
        self.close_adopted(group, &terms);
        self.close_own(group, &terms);
    }

    /// Ends silently: nobody of ours failed, and the size rule sees what is missing.
    fn close_adopted(&mut self, group: &GroupId, terms: &Terms) {
        let Some(memory) = self.state.groups.get(group) else { return };
        let Some(adopted) = &memory.adopted else { return };
        let is_over = self.now >= adopted.deadline(memory.profile.times.provision);
        // Arrivals are credited to the own request first, so this one may wait for all that is left.
        let coming = if is_over { 0 } else { self.coming(group, adopted, terms) };
        if let Some(memory) = self.state.groups.get_mut(group) {
            let waits_for = |open: &mut Request| {
                open.increase = open.increase.min(coming);
                open.increase == 0
            };
            memory.adopted.take_if(waits_for);
        }
    }

    fn close_own(&mut self, group: &GroupId, terms: &Terms) {
        let Some(memory) = self.state.groups.get(group) else { return };
        let Some(own) = memory.own.clone().filter(Request::is_settled) else { return };
        let others = memory.adopted.as_ref().map_or(0, |adopted| adopted.increase);
        let coming = self.coming(group, &own, terms).saturating_sub(others).min(own.increase);
        let is_over = self.now >= own.deadline(memory.profile.times.provision);
        if coming > 0 && !is_over {
            return;
        }
        let Some(memory) = self.state.groups.get_mut(group) else { return };
        memory.own = None;
        if coming > 0 {
            memory.revert = terms.missing().min(own.increase);
            self.time_out(group, &own, coming);
        }
    }

    /// How many nodes a request can still wait for: those nobody saw, and those not registered.
    fn coming(&self, group: &GroupId, request: &Request, terms: &Terms) -> u32 {
        let is_late = |class, first_listed| {
            class == Class::LongUnregistered && first_listed >= request.opened
        };
        let instances = self.view.instances.values().filter(|it| it.group == *group);
        let late = count(instances.filter(|it| is_late(it.class, it.first_listed)));
        terms.missing().saturating_add(terms.counts.unregistered).saturating_add(late)
    }

    fn time_out(&mut self, group: &GroupId, request: &Request, delta: u32) {
        let took = upstream_words(elapsed(request.opened, self.now));
        let message = format!("Scale-up timed out for node group {group} after {took}");
        let event = format!("Nodes added to group {group} failed to register within {took}");
        self.notices.tell(EventReason::ScaleUpTimedOut, event);
        self.fail(group, FailureCode::Timeout, message, delta);
    }
}
