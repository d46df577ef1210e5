//! A group, explained: its sizes, the terms they follow from, and what keeps it from growing.

use jiff::Timestamp;

use super::Account;
use crate::id::GroupId;
use crate::registry::Registry;
use crate::request::Request;
use crate::safety::Refusal;
use crate::state::GroupMemory;
use crate::terms::Terms;
use crate::time::clock;

// === impl Registry ===

impl Registry {
    pub(super) fn explain_group(&self, group: &GroupId, now: Timestamp) -> Option<Account> {
        let (view, memory) = (self.view.groups.get(group)?, self.state.groups.get(group)?);
        let target = view.target.map_or("unknown".to_owned(), |target| target.to_string());
        let mut account = Account::of(&[
            format!("group {group}"),
            format!("target {target}"),
            format!("min {}", memory.profile.min),
            format!("max {}", memory.profile.max),
        ]);
        if let Some(reason) = &view.stale {
            account.say("stale", reason);
        }
        if let Some(terms) = self.terms(group, now) {
            account.say("sizes", &sizes(&terms));
            account.say("terms", &letters(&terms));
        }
        account.say("request", &requests(memory, now));
        account.say("backoff", &self.backoff_words(group, now));
        account.say("wrong", &wrong_size(memory, now));
        account.say("refused", &refused(&self.scale_up_refusals(group, now), now));
        Some(account)
    }

    fn backoff_words(&self, group: &GroupId, now: Timestamp) -> String {
        let Some(backoff) = self.backoff(group, now) else { return "none".to_owned() };
        let until = clock(backoff.until, now);
        format!("until {until} after {}: {}", backoff.code, backoff.message)
    }
}

fn sizes(terms: &Terms) -> String {
    let range = terms.range();
    let (registered, upcoming) = (terms.counts.registered(), terms.upcoming());
    let sizes = format!("range {}..{}, registered {registered}", range.min, range.max);
    format!("{sizes}, upcoming {upcoming}, missing {}", terms.missing())
}

/// The letters that the formulae are written in.
fn letters(terms: &Terms) -> String {
    let counts = &terms.counts;
    let letters = [
        ("R", counts.ready),
        ("S", counts.suspended),
        ("N", counts.starting),
        ("U", counts.unready),
        ("D", counts.leaving),
        ("X", counts.unregistered),
        ("L", counts.long_unregistered),
        ("E", counts.create_failed),
        ("T", terms.target),
        ("I", terms.increase),
    ];
    letters.map(|(letter, value)| format!("{letter} {value}")).join(", ")
}

fn requests(memory: &GroupMemory, now: Timestamp) -> String {
    let words = |whose: &str, request: &Request| {
        let (since, increase) = (clock(request.opened, now), request.increase);
        let until = clock(request.deadline(memory.profile.times.provision), now);
        let settled = if request.is_settled() { "" } else { ", not settled" };
        format!("{whose} +{increase} since {since}, until {until}{settled}")
    };
    let own = memory.own.iter().map(|request| words("own", request));
    let all: Vec<_> =
        own.chain(memory.adopted.iter().map(|request| words("adopted", request))).collect();
    if all.is_empty() { "none".to_owned() } else { all.join("; ") }
}

fn wrong_size(memory: &GroupMemory, now: Timestamp) -> String {
    let Some(size) = &memory.size else { return "no".to_owned() };
    let since = clock(size.since, now);
    format!("{} registered of {} since {since}", size.registered, size.target)
}

fn refused(refusals: &[Refusal], now: Timestamp) -> String {
    let words = |refusal: &Refusal| match refusal {
        Refusal::Backoff { until, .. }
        | Refusal::BrokenStart { until, .. }
        | Refusal::NothingRemembered { until } => {
            format!("{refusal} until {}", clock(*until, now))
        }
        _ => refusal.to_string(),
    };
    match refusals {
        [] => "nothing".to_owned(),
        _ => refusals.iter().map(words).collect::<Vec<_>>().join(", "),
    }
}
