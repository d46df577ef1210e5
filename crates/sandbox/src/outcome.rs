//! How an attempt ended. There is an outcome only when its last process is gone.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::log::Volume;

/// The word about one attempt: final, and true only because nothing of it runs any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    pub outcome: Outcome,
    pub usage: Usage,
    pub log: Volume,
}

/// Why it is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The command came to its end by itself, or something other than us killed it. If the shim was
    /// killed, what it left behind is too, and that reads as signal 9.
    Exited { exit: Exit, is_oom_killed: bool },
    /// It ran longer than its timeout, and was stopped.
    TimedOut,
    /// It wrote more scratch files than it may, and was stopped.
    ScratchExceeded,
    /// No instruction of the command was executed.
    NeverStarted { reason: String },
    /// It was stopped because somebody asked, or because the deadline passed.
    Stopped,
    /// As above, and no instruction of the command was executed.
    StoppedBeforeStart,
}

/// How the command's own process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exit {
    Code(i32),
    Signal(i32),
}

/// What the attempt took, all its processes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// 0: not measured.
    pub peak_memory_bytes: u64,
    pub cpu: Duration,
}

// === impl Ended ===

impl Ended {
    pub(crate) fn never_started(reason: impl Into<String>) -> Self {
        let outcome = Outcome::NeverStarted { reason: reason.into() };
        Self { outcome, usage: Usage::default(), log: Volume::default() }
    }
}
