//! One machine: a daemon that comes and goes, the processes beside it, and its line to the store.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::Timestamp;
use tasks::core::agent::{Agent, Event, Leftovers, Profile, Timing};
use tasks::core::id::Revision;
use tasks::core::keys::KeyRange;
use tasks::core::time::{Boottime, Now, later};
use tasks::core::txn::LeaseId;
use uuid::Uuid;

use super::runtime::Runtime;
use crate::scene;

/// Both watches of a daemon. They are apart: one may lag behind the other.
pub(crate) const STREAMS: [KeyRange; 2] = [KeyRange::TASKS, KeyRange::NODES];

/// Small, so that some records must be read before they are claimed.
const KEPT_RECORD_BYTES_MAX: usize = 1500;

pub(crate) struct Host {
    pub(crate) number: u32,
    pub(crate) daemon: Option<Agent>,
    /// Messages of earlier daemons are for nobody.
    pub(crate) incarnation: u32,
    pub(crate) runtime: Runtime,
    pub(crate) lease: Option<LeaseId>,
    pub(crate) streams: [Stream; 2],
    /// When the daemon looks again by itself.
    pub(crate) wakes: Duration,
    /// Until then the daemon does not run, though its processes do.
    pub(crate) paused_until: Duration,
    pub(crate) waiting: VecDeque<Event>,
    /// Until then nothing reaches the store or comes from it.
    pub(crate) cut_until: Duration,
}

/// How far a watch has come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stream {
    pub(crate) sent: Revision,
    /// Events of one watch never overtake each other.
    pub(crate) arrives: Duration,
    pub(crate) is_open: bool,
}

// === impl Host ===

impl Host {
    pub(crate) fn new(number: u32) -> Self {
        Self {
            number,
            daemon: None,
            incarnation: 0,
            runtime: Runtime::default(),
            lease: None,
            streams: [Stream::default(); 2],
            wakes: Duration::ZERO,
            paused_until: Duration::ZERO,
            waiting: VecDeque::new(),
            cut_until: Duration::ZERO,
        }
    }

    /// Boot times mean nothing elsewhere, and wall clocks differ by minutes.
    pub(crate) fn now(&self, at: Duration) -> Now {
        let skew = Duration::from_mins(u64::from(self.number) * 3 % 5);
        let start = Timestamp::from_second(1_700_000_000).expect("a moment");
        Now { boot: self.boot(at), wall: later(start, at + skew) }
    }

    pub(crate) fn boot(&self, at: Duration) -> Boottime {
        Boottime(at + Duration::from_secs(1000 * u64::from(self.number)))
    }

    /// The reverse of [`Self::boot`].
    pub(crate) fn at(&self, boot: Boottime) -> Duration {
        boot.0.saturating_sub(Duration::from_secs(1000 * u64::from(self.number)))
    }

    pub(crate) fn start(&mut self) {
        self.incarnation += 1;
        self.waiting.clear();
        let seed = u128::from(self.number) << 64 | u128::from(self.incarnation);
        let profile = Profile {
            node: scene::node(self.number),
            timing: Timing::default(),
            seed: Uuid::from_u128(seed),
            kept_record_bytes_max: KEPT_RECORD_BYTES_MAX,
        };
        let leftovers = Leftovers {
            ended: self.runtime.clear(),
            lease: self.lease.take(),
            ..Default::default()
        };
        self.daemon = Some(Agent::new(profile, leftovers));
    }

    /// `is_machine`: all processes die too.
    pub(crate) fn crash(&mut self, is_machine: bool) {
        self.daemon = None;
        self.incarnation += 1;
        self.streams = [Stream::default(); 2];
        self.waiting.clear();
        if is_machine {
            self.runtime.processes.clear();
        }
    }
}
