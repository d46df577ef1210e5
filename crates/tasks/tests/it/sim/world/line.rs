//! Between daemons and the store: requests and answers are delayed, lost, and overtake each other.

use std::time::Duration;

use tasks::core::agent::Event;

use super::{Happening, ROUGH_UNTIL, Request, World};

/// After this, a caller does not know what became of its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(1);

// === impl World ===

impl World {
    pub(super) fn send(&mut self, index: usize, request: Request) {
        let incarnation = self.hosts[index].incarnation;
        let unanswered = request.unanswered();
        if let Some(event) = unanswered {
            let happening = Happening::Tell { host: index, incarnation, event };
            self.after(REQUEST_TIMEOUT, happening);
        }
        let is_lost = self.is_cut(index) || (self.is_rough() && self.chance.once_in(15));
        if !is_lost {
            let wait = self.travel();
            self.after(wait, Happening::Arrive { host: index, incarnation, request });
        }
    }

    /// Sometimes a message takes so long that everybody has given it up.
    fn travel(&mut self) -> Duration {
        if self.is_rough() && self.chance.once_in(12) {
            return self.chance.micros(300_000..15_000_000);
        }
        self.chance.micros(500..3_000)
    }

    pub(super) fn is_rough(&self) -> bool {
        self.plot.is_rough && self.now < ROUGH_UNTIL
    }

    pub(super) fn is_cut(&self, index: usize) -> bool {
        self.hosts[index].cut_until > self.now
    }

    pub(super) fn answer(&mut self, host: usize, incarnation: u32, event: Event) {
        let is_lost = self.is_cut(host) || (self.is_rough() && self.chance.once_in(15));
        if !is_lost {
            let wait = self.travel();
            self.after(wait, Happening::Tell { host, incarnation, event });
        }
    }
}

// === impl Request ===

impl Request {
    /// What the caller is told if no answer comes in time. An answer that comes later is news of
    /// something that is settled or given up.
    fn unanswered(&self) -> Option<Event> {
        match self {
            Self::Txn { token, .. } => Some(Event::Unanswered { token: *token }),
            Self::Register { node, .. } => Some(Event::NotRegistered { node: node.id }),
            Self::KeepAlive { .. } | Self::Revoke(_) => None,
        }
    }
}
