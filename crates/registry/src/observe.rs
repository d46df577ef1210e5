//! One observation: facts in, a new view and what to do out. Each step is a file of its own, and a
//! group whose sizes are not known takes part in none that decides or forgets.

mod decide;
mod deletions;
mod errors;
mod groups;
mod health;
mod instances;
mod losses;
mod nodes;
mod requests;
mod sizes;
mod targets;

use jiff::Timestamp;

use crate::config::Config;
use crate::decision::Observation;
use crate::facts::Facts;
use crate::failure;
use crate::id::GroupId;
use crate::notice::{FailureCode, Notices, Report};
use crate::registry::Registry;
use crate::sift::{Sieve, Sifted};
use crate::state::{DELETION_TIMEOUT, State};
use crate::terms::Terms;
use crate::time::{elapsed, later};
use crate::view::View;

/// An observation in the making.
struct Round<'a> {
    now: Timestamp,
    config: &'a Config,
    sifted: Sifted<'a>,
    state: &'a mut State,
    view: View,
    notices: Notices,
}

// === impl Registry ===

impl Registry {
    /// Takes in what was read and tells what to do about it.
    pub fn observe(&mut self, now: Timestamp, facts: &Facts) -> Observation {
        let mut notices = Notices::default();
        let now = self.raised(now, &mut notices.reports);
        self.resume(now);
        let Self { config, state, .. } = self;
        let times = config.times;
        let sifted = Sieve { now, times, state, reports: &mut notices.reports }.sift(facts);
        let view = View { is_made: true, ..View::default() };
        let round = Round { now, config, sifted, state, view, notices };
        let (view, observation) = round.run();
        self.view = view;
        self.state.observed_at = Some(now);
        self.mark(now);
        observation
    }

    /// Time does not go back here, whatever clocks do: what is late stays late.
    fn raised(&self, now: Timestamp, reports: &mut Vec<Report>) -> Timestamp {
        let Some(last) = self.state.observed_at.filter(|last| now < *last) else { return now };
        reports.push(Report::ClockWentBack { told: now, taken: last });
        last
    }

    /// After a time in which nobody looked, nothing is removed for a while.
    fn resume(&mut self, now: Timestamp) {
        let Self { config, state, .. } = self;
        if state.adopts_gaps && state.observed_at.is_none() {
            // What is not remembered may have happened a moment ago: a raise, a deletion, a halt.
            state.increases_from = Some(later(now, config.settle_timeout));
            state.removals_from = Some(later(now, DELETION_TIMEOUT));
            state.halt.ended = Some(now);
        }
        let gap = state.observed_at.map(|last| elapsed(last, now));
        if let Some((gap, tolerance)) = gap.zip(config.observation_gap_tolerance)
            && gap > tolerance
        {
            state.unneeded.values_mut().for_each(|since| *since = now);
            state.removals_from = state.removals_from.max(Some(later(now, tolerance)));
        }
    }
}

// === impl Round ===

impl Round<'_> {
    fn run(mut self) -> (View, Observation) {
        self.meet_groups();
        self.find_losses();
        self.settle_deletions();
        self.see_nodes();
        self.see_instances();
        self.count_errors();
        for group in self.good_groups() {
            self.read_target(&group);
            self.close_requests(&group);
            self.check_size(&group);
        }
        self.judge_health();
        let decisions = self.decide();
        (self.view, Observation { decisions, notices: self.notices })
    }

    fn good_groups(&self) -> Vec<GroupId> {
        let good = self.sifted.groups.iter().filter(|(_, reading)| reading.sizes.is_ok());
        good.map(|(group, _)| group.clone()).collect()
    }

    fn terms(&self, group: &GroupId) -> Option<Terms> {
        self.view.terms(self.state, group, self.now)
    }

    fn fail(&mut self, group: &GroupId, code: FailureCode, message: String, delta: u32) {
        let failure = failure::of(group, code, message, delta);
        let memory = self.state.groups.get_mut(group);
        failure::note(memory, failure, (self.now, self.config), &mut self.notices);
    }
}
