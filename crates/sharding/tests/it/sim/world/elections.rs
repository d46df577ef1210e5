//! Who of the sharders leads: 15 seconds without a word, and the other takes over; 10, and the one
//! stops by itself.

use std::time::Duration;

use sharding::core::history::Violation;
use sharding::core::sharder::Event;

use super::{Happening, News, Party, World};

const LEASE: Duration = Duration::from_secs(15);
const WRITE_UNTIL: Duration = Duration::from_secs(10);
const EVERY: Duration = Duration::from_secs(2);

// === impl World ===

impl World {
    pub(super) fn elect(&mut self, number: usize) -> Result<(), Violation> {
        self.after(EVERY, Happening::Elect(number));
        let process = &self.sharders[number];
        let is_able =
            process.is_up && process.paused_until <= self.now && process.cut_until <= self.now;
        let is_free = match self.leader {
            None => true,
            Some((leader, renewed)) => leader == number || self.now >= renewed + LEASE,
        };
        if is_able && is_free {
            self.leader = Some((number, self.now));
            let (to, life) = (Party::Sharder(number), self.life(Party::Sharder(number)));
            let until = self.sharder_clock(number).mono + WRITE_UNTIL;
            let news = News::Sharder(Event::Leading { until });
            return self.tell(to, life, news);
        }
        Ok(())
    }
}
