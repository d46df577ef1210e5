//! Pods away from a node: each is asked to go until it is let, then waited for.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use fit::drain::{Verdict, is_finished, judge};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::super::kept::KeptPod;
use super::super::names::DAEMON_EVICTION;
use super::super::scale_down::Order;
use super::super::world::{PodKey, annotation, grace, is_daemon, is_expendable, is_mirror};
use super::{Evicted, GRACE_ALLOWANCE, Sight};

/// A refused eviction is asked for again after this.
const RETRY: Duration = Duration::from_secs(10);

/// Evictions under way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Eviction {
    /// Pods that must go first.
    pods: BTreeMap<PodKey, Attempt>,
    /// Pods that are asked once, and not waited for.
    daemons: Vec<(PodKey, i64)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Attempt {
    /// To be asked from then on; first asked, if ever.
    Due {
        at: Timestamp,
        first: Timestamp,
    },
    Asked {
        first: Timestamp,
    },
    /// On its way out since.
    Going {
        since: Timestamp,
    },
    /// It did not go in time, and goes with a node whose kubelet may not be there to end it.
    Left,
}

/// What is to be done about a pod now.
enum Look {
    Ask,
    Wait,
    /// It was let go, and has not gone.
    Late,
}

// === impl Eviction ===

impl Eviction {
    pub(super) fn new(sight: &Sight<'_>, order: &Order) -> Self {
        let is_evicted = |pod: &&&Arc<KeptPod>| match annotation(pod, DAEMON_EVICTION) {
            Some(wish) => wish == "true",
            None => sight.config.drain.evicts_daemons && !order.is_empty,
        };
        let daemons = sight.pods.iter().filter(|pod| is_daemon(pod) && !is_mirror(pod));
        let daemons = daemons.filter(is_evicted).filter(|pod| !is_finished(&pod.kind));
        let asked = daemons.map(|pod| (PodKey::of(pod), grace_secs(pod, sight)));
        Self { pods: BTreeMap::new(), daemons: asked.collect() }
    }

    /// Whom to ask now, with how much grace.
    ///
    /// # Errors
    ///
    /// If the node has to stay: a pod does not go, or one came that may not.
    pub(super) fn step(
        &mut self,
        sight: &Sight<'_>,
        order: &Order,
    ) -> Result<Vec<(PodKey, i64)>, String> {
        let mut seen = BTreeMap::new();
        for pod in sight.pods {
            if must_go(pod, sight)? {
                seen.insert(PodKey::of(pod), *pod);
            }
        }
        if order.is_empty
            && let Some(pod) = seen.keys().next()
        {
            return Err(format!("{pod} came to it"));
        }
        self.pods.retain(|key, _| seen.contains_key(key));
        let mut wanted = Vec::new();
        for (key, pod) in seen {
            match self.look_at(&key, pod, sight)? {
                Look::Ask => wanted.push((key, grace_secs(pod, sight))),
                Look::Wait => {}
                // Nobody ends pods on a machine that is lost; waited for, it would never go.
                Look::Late if order.is_lost() => _ = self.pods.insert(key, Attempt::Left),
                Look::Late => return Err(format!("{key} did not go in time")),
            }
        }
        wanted.append(&mut self.daemons);
        Ok(wanted)
    }

    pub(super) fn is_over(&self) -> bool {
        self.pods.values().all(|attempt| *attempt == Attempt::Left)
    }

    fn look_at(&mut self, key: &PodKey, pod: &KeptPod, sight: &Sight<'_>) -> Result<Look, String> {
        let (now, limits) = (sight.now, &sight.config.drain);
        let fresh = Attempt::Due { at: now, first: now };
        let attempt = self.pods.entry(key.clone()).or_insert(fresh);
        if let Some(deleted) = &pod.kind.metadata.deletion_timestamp {
            // The API server writes the end of the grace here, at the earliest now.
            let since = deleted.0.min(now);
            if !matches!(attempt, Attempt::Going { .. } | Attempt::Left) {
                *attempt = Attempt::Going { since };
            }
        }
        match attempt {
            Attempt::Due { at, first } if *at <= now => {
                if has_passed(*first, limits.eviction_max, now) {
                    return Err(format!("{key} could not be evicted in time"));
                }
                *attempt = Attempt::Asked { first: *first };
                Ok(Look::Ask)
            }
            Attempt::Due { .. } | Attempt::Asked { .. } | Attempt::Left => Ok(Look::Wait),
            Attempt::Going { since } => {
                let secs = u64::try_from(grace_secs(pod, sight)).unwrap_or(0);
                let limit = Duration::from_secs(secs) + GRACE_ALLOWANCE;
                Ok(if has_passed(*since, limit, now) { Look::Late } else { Look::Wait })
            }
        }
    }

    pub(super) fn on_reply(&mut self, pod: &PodKey, outcome: Evicted, now: Timestamp) {
        let Some(attempt) = self.pods.get_mut(pod) else { return };
        let Attempt::Asked { first } = *attempt else { return };
        *attempt = match outcome {
            Evicted::Accepted | Evicted::Gone => Attempt::Going { since: now },
            Evicted::Refused => {
                let at = now.saturating_add(RETRY).unwrap_or(Timestamp::MAX);
                Attempt::Due { at, first }
            }
        };
    }
}

impl fmt::Display for Eviction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = |(pod, attempt): (&PodKey, &Attempt)| match attempt {
            Attempt::Due { .. } => format!("{pod} is asked again"),
            Attempt::Asked { .. } => format!("{pod} is asked"),
            Attempt::Going { .. } => format!("{pod} is going"),
            Attempt::Left => format!("{pod} goes with it"),
        };
        let all: Vec<String> = self.pods.iter().map(words).collect();
        f.write_str(&all.join(", "))
    }
}

/// Whether the node waits for a pod to go. Who is expendable goes with it.
fn must_go(pod: &KeptPod, sight: &Sight<'_>) -> Result<bool, String> {
    if is_expendable(pod, sight.config.expendable_priority_cutoff) {
        return Ok(false);
    }
    match judge(&pod.kind, sight.surroundings) {
        Verdict::Ignored => Ok(false),
        Verdict::Moves => Ok(!is_finished(&pod.kind)),
        Verdict::Blocks(reason) => Err(format!("{} blocks it: {reason}", PodKey::of(pod))),
    }
}

fn grace_secs(pod: &KeptPod, sight: &Sight<'_>) -> i64 {
    let max = i64::try_from(sight.config.drain.grace_max.as_secs()).unwrap_or(i64::MAX);
    grace(pod).as_secs().min(max)
}

fn has_passed(since: Timestamp, limit: Duration, now: Timestamp) -> bool {
    since.checked_add(limit).is_ok_and(|end| end <= now)
}
