//! What the planners remember from one iteration to the next, beside the registry.
//!
//! What must not be forgotten is [saved](Memory::save) with the registry's state. If it is lost all
//! the same, [`Memory::lost`] takes every cooldown for begun, which only makes us later. The rest is
//! found anew.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use registry::{GroupId, NodeName};
use serde::{Deserialize, Serialize};

use super::action::Effect;
use super::config::Config;
use super::drain::{Drains, End, Reply};
use super::scale_down::{Against, Order, Reason};
use super::template::Sample;

/// A group whose provider refused, or did not answer, is left alone for this long …
const RETRY_FIRST: Duration = Duration::from_secs(30);

/// … and at most for this long.
const RETRY_MAX: Duration = Duration::from_mins(5);

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    pub(super) times: Times,
    pub(super) retries: BTreeMap<GroupId, Retry>,
    /// Nodes that could not go when they were last looked at.
    pub(super) unremovable: BTreeMap<NodeName, Unremovable>,
    pub(super) samples: BTreeMap<GroupId, Sample>,
    /// Removals under way.
    pub drains: Drains,
}

/// When sizes last changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Times {
    pub(super) added: Option<Timestamp>,
    pub(super) deleted: Option<Timestamp>,
    pub(super) failed: Option<Timestamp>,
}

/// A group whose provider refused, or did not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Retry {
    pub(super) until: Timestamp,
    wait: Duration,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Unremovable {
    pub(super) until: Timestamp,
    pub(super) why: Against,
}

/// What is saved.
#[derive(Serialize, Deserialize)]
struct Saved {
    times: Times,
    retries: BTreeMap<GroupId, Retry>,
}

/// All of it as it can be written down, for whoever goes on at this very point.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Whole {
    times: Times,
    retries: BTreeMap<GroupId, Retry>,
    unremovable: BTreeMap<NodeName, Unremovable>,
    samples: BTreeMap<GroupId, (Node, Vec<Pod>)>,
    drains: Drains,
}

/// Why saved bytes are not taken. [`Memory::lost`] is what is left.
#[derive(Debug, thiserror::Error)]
#[error("the planners' memory cannot be read")]
pub struct RestoreError(#[source] serde_json::Error);

// === impl Memory ===

impl Memory {
    /// Of a cluster where nothing was ever done.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Of a cluster where anything may just have been done.
    #[must_use]
    pub fn lost(now: Timestamp) -> Self {
        let times = Times { added: Some(now), deleted: Some(now), failed: Some(now) };
        Self { times, ..Self::default() }
    }

    /// Goes on where the saved one was.
    ///
    /// # Errors
    ///
    /// If the bytes are none that were saved.
    pub fn restore(bytes: &[u8]) -> Result<Self, RestoreError> {
        let Saved { times, retries } = serde_json::from_slice(bytes).map_err(RestoreError)?;
        Ok(Self { times, retries, ..Self::default() })
    }

    /// Everything that must outlive a restart. Equal memories give equal bytes.
    #[must_use]
    pub fn save(&self) -> Vec<u8> {
        let saved = Saved { times: self.times, retries: self.retries.clone() };
        serde_json::to_vec(&saved).expect("times and names can be written")
    }

    #[must_use]
    pub fn whole(&self) -> Whole {
        let samples = self.samples.iter();
        Whole {
            times: self.times,
            retries: self.retries.clone(),
            unremovable: self.unremovable.clone(),
            samples: samples.map(|(group, it)| (group.clone(), it.to_objects())).collect(),
            drains: self.drains.clone(),
        }
    }

    /// Takes in what came of a command of a removal, and says if the removal is over.
    pub fn on_drain_reply(
        &mut self,
        (node, reply): (&NodeName, Reply),
        now: Timestamp,
        config: &Config,
    ) -> Option<End> {
        if let Reply::Deleted(Effect::Failed(_)) = reply
            && let Some(group) = self.drains.group_of(node).cloned()
        {
            self.on_refused(&group, now);
        }
        let end = self.drains.on_reply(node, reply, now)?;
        self.on_drain_end(&end, now, config);
        Some(end)
    }

    /// Takes in that a removal is over.
    pub fn on_drain_end(&mut self, end: &End, now: Timestamp, config: &Config) {
        match end {
            End::HandedOver { order, is_confirmed } => {
                match is_confirmed {
                    true => self.on_accepted(&order.group),
                    false => self.on_refused(&order.group, now),
                }
                self.times.deleted = self.times.deleted.max(Some(now));
            }
            End::RolledBack { order, why } => {
                self.times.failed = self.times.failed.max(Some(now));
                let until = now.saturating_add(config.scale_down.unremovable_recheck);
                self.on_rolled_back(order, why, (now, until.unwrap_or(Timestamp::MAX)));
            }
            End::Vanished(_) => {}
        }
    }

    /// The time of a node that was unneeded starts anew. One that was lost is due at once, before all others:
    /// if its pods cannot be made to go, no other drain would ever have its turn. What the provider refused
    /// is tried again as its group may be.
    fn on_rolled_back(&mut self, order: &Order, why: &str, (now, until): (Timestamp, Timestamp)) {
        if order.is_lost() && self.retry(&order.group, now).is_none() {
            let why = Against::new(Reason::UnexpectedError, why);
            self.unremovable.insert(order.node.clone(), Unremovable { until, why });
        }
    }

    pub(super) fn retry(&self, group: &GroupId, now: Timestamp) -> Option<Timestamp> {
        self.retries.get(group).map(|retry| retry.until).filter(|until| now < *until)
    }

    /// Also after no answer.
    pub(super) fn on_refused(&mut self, group: &GroupId, now: Timestamp) {
        if self.retry(group, now).is_some() {
            // Of several nodes on their way out each is refused; that is one refusal more, not many.
            return;
        }
        let known = self.retries.get(group);
        let wait = known.map_or(RETRY_FIRST, |retry| (retry.wait * 2).min(RETRY_MAX));
        let until = now.saturating_add(wait).unwrap_or(Timestamp::MAX);
        self.retries.insert(group.clone(), Retry { until, wait });
    }

    pub(super) fn on_accepted(&mut self, group: &GroupId) {
        self.retries.remove(group);
    }
}

impl From<Whole> for Memory {
    fn from(whole: Whole) -> Self {
        let Whole { times, retries, unremovable, samples, drains } = whole;
        let samples = samples.into_iter().map(|(group, it)| (group, Sample::from_objects(it)));
        Self { times, retries, unremovable, samples: samples.collect(), drains }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_double_the_wait() {
        let mut now: Timestamp = "2026-03-01T08:00:00Z".parse().unwrap();
        let (mut memory, group) = (Memory::new(), GroupId::from("g"));
        let mut waits = Vec::new();
        for _ in 0..6 {
            memory.on_refused(&group, now);
            let until = memory.retry(&group, now).unwrap();
            memory.on_refused(&group, now);
            assert_eq!(memory.retry(&group, now), Some(until), "it is waited for already");
            waits.push(until.duration_since(now).as_secs());
            now = until;
        }
        assert_eq!(waits, [30, 60, 120, 240, 300, 300]);
        memory.on_refused(&group, now);
        memory.on_accepted(&group);
        assert_eq!(memory.retry(&group, now), None);
    }

    #[test]
    fn what_is_saved_comes_back() {
        let now: Timestamp = "2026-03-01T08:00:00Z".parse().unwrap();
        let mut memory = Memory::lost(now);
        memory.on_refused(&"g".into(), now);
        let restored = Memory::restore(&memory.save()).unwrap();
        assert_eq!((restored.times, restored.retries.clone()), (memory.times, memory.retries));
        assert_eq!(restored.times.failed, Some(now));
        assert!(Memory::restore(b"{").is_err());
    }
}
