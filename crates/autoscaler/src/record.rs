//! Iterations as lines of text, and those lines run again. Where lines are kept is the binary's.
//!
//! | module | owns |
//! |---|---|
//! | `log` | what is to be written of the iteration at hand |
//! | `seen` | the cluster as it was looked at, written as what has changed since |
//! | `replay` | lines run again |
//!
//! A line is one iteration, with what was done about removals since the one before. One that begins
//! anew says where everything stood; the others go on from the line before.

mod log;
mod replay;
mod seen;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use registry::{Decision, Facts, NodeName, Outcome, Targets};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use crate::core::memory::Whole;
use crate::core::{Account, Action, Command, Config, Effect, End, Order, PodKey, Reply};
use crate::options::Options;

pub(crate) use log::Log;
pub use replay::{Difference, Error, Replay};
pub(crate) use seen::{Change, Seen};

/// Iterations that wait to be written: a disk that is slower is not waited for.
pub const QUEUE_MAX: usize = 8;

/// Steps of thought between two looks at the clock. Where an estimate was cut short is counted in them.
pub(crate) const STEPS: usize = 1000;

/// The one version there is.
const VERSION: u32 = 2;

/// What a file begins with.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    version: u32,
    registry: registry::Config,
    plans: Config,
    expander: String,
}

/// Everything that follows.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Line {
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<Start>,
    entries: Vec<Entry>,
}

/// Where everything stood.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Start {
    pub(crate) now: Timestamp,
    pub(crate) state: String,
    pub(crate) memory: Whole,
    /// Iterations before this one that were not written.
    pub(crate) dropped: u64,
}

/// Something put in, and what came out.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Entry {
    /// What an iteration went by, and what the registry made of it.
    Looked {
        now: Timestamp,
        seed: u64,
        facts: Facts,
        change: Change,
        decisions: Vec<Decision>,
    },
    TargetsRead(Targets),
    Recorded {
        now: Timestamp,
        outcome: Outcome,
    },
    /// The estimate at hand was cut short, after so many looks at the clock.
    Cut {
        after: usize,
    },
    Acted {
        action: Action,
        effect: Effect,
    },
    Decided(Decided),
    /// Removals under way were looked at, on a cluster that has changed, or on the one that the iteration
    /// went by.
    Stepped {
        now: Timestamp,
        change: Option<Change>,
        commands: Vec<Command>,
        ends: Vec<End>,
    },
    Replied {
        now: Timestamp,
        node: NodeName,
        reply: Reply,
    },
    /// Nobody acts, so no removal is under way.
    NoneRemoved,
}

/// What an iteration came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Decided {
    ending: String,
    scale_up: Option<String>,
    /// Those that it is for.
    pods: BTreeSet<PodKey>,
    unneeded: BTreeSet<NodeName>,
    cooldown: Option<String>,
    removals: Vec<Order>,
}

/// Where lines are handed to. Clones are the same.
#[derive(Clone, Debug)]
pub struct Recorder {
    lines: mpsc::Sender<Recorded>,
    wants_start: Arc<AtomicBool>,
}

/// Where lines come out.
#[derive(Debug)]
pub struct Lines {
    lines: mpsc::Receiver<Recorded>,
    wants_start: Arc<AtomicBool>,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    pub text: String,
    /// Whether a file may begin with it.
    pub is_start: bool,
}

/// The first line of a file.
#[must_use]
pub fn header(options: &Options) -> String {
    let (registry, plans) = (options.registry.clone(), options.plans.clone());
    let expander = options.expander.clone();
    json(&Header { version: VERSION, registry, plans, expander })
}

/// A queue of so few lines that nobody who is slow is waited for.
#[must_use]
pub fn channel() -> (Recorder, Lines) {
    let (sender, receiver) = mpsc::channel(QUEUE_MAX);
    let wants_start = Arc::new(AtomicBool::new(false));
    let recorder = Recorder { lines: sender, wants_start: wants_start.clone() };
    (recorder, Lines { lines: receiver, wants_start })
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("keys are text and values are finite")
}

// === impl Recorder ===

impl Recorder {
    /// False if there is no room for it.
    fn offer(&self, line: &Line) -> bool {
        let is_start = line.start.is_some();
        self.lines.try_send(Recorded { text: json(line), is_start }).is_ok()
    }

    /// Whether the next line should say where everything stands. Asked once, answered once.
    fn is_start_wanted(&self) -> bool {
        self.wants_start.swap(false, Ordering::Relaxed)
    }
}

// === impl Lines ===

impl Lines {
    /// The next line; none once everybody who records has gone.
    pub fn recv(&mut self) -> Option<Recorded> {
        self.lines.blocking_recv()
    }

    /// What is there already.
    pub fn try_recv(&mut self) -> Option<Recorded> {
        self.lines.try_recv().ok()
    }

    /// Asks for a line that a file may begin with.
    pub fn want_start(&self) {
        self.wants_start.store(true, Ordering::Relaxed);
    }
}

// === impl Decided ===

impl Decided {
    pub(crate) fn of(account: &Account) -> Self {
        let plan = account.scale_up.as_ref();
        Self {
            ending: account.ending.as_ref().map(ToString::to_string).unwrap_or_default(),
            scale_up: plan.map(ToString::to_string),
            pods: plan.map(|plan| plan.pods.clone()).unwrap_or_default(),
            unneeded: account.unneeded.clone(),
            cooldown: account.cooldown.map(|cooldown| cooldown.to_string()),
            removals: account.removals.clone(),
        }
    }
}
