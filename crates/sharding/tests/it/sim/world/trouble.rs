//! What goes wrong: processes die, pause, are cut off; watches hang; Leases are deleted; weights
//! change.

use std::time::Duration;

use sharding::core::history::{Fact, Violation};
use sharding::core::instance::Stop;
use sharding::core::lease::Lease;

use super::{Happening, Party, ROUGH_UNTIL, World};

const WEIGHTS: [&str; 5] = ["0", "50", "100", "300", "many"];

// === impl World ===

impl World {
    pub(super) fn trouble(&mut self) -> Result<(), Violation> {
        if self.now < ROUGH_UNTIL {
            let wait = self.chance.millis(1_000..20_000);
            self.after(wait, Happening::Trouble);
        }
        if self.chance.once_in(4) {
            let number = self.chance.below(self.sharders.len());
            self.trouble_sharder(number);
            return Ok(());
        }
        let number = self.chance.below(self.processes.len());
        self.trouble_instance(number)
    }

    fn trouble_sharder(&mut self, number: usize) {
        match self.chance.below(4) {
            0 => {
                self.sharders[number].crash();
                let wait = self.chance.millis(500..20_000);
                self.after(wait, Happening::Start(Party::Sharder(number)));
            }
            1 => {
                let pause = self.chance.millis(500..40_000);
                self.pause(Party::Sharder(number), pause);
            }
            2 => {
                let cut = self.chance.millis(500..30_000);
                self.sharders[number].cut_until = self.now + cut;
            }
            _ => {
                let hang = self.chance.millis(1_000..70_000);
                self.sharders[number].watched_until = self.now + hang;
            }
        }
    }

    fn trouble_instance(&mut self, number: usize) -> Result<(), Violation> {
        match self.chance.below(8) {
            0 if self.processes[number].is_up() => self.end_process(number)?,
            1 if self.processes[number].is_up() => {
                let pause = self.chance.millis(500..60_000);
                self.pause(Party::Instance(number), pause);
                let worker = self.processes[number].worker();
                self.tell_history(Fact::Stopped(worker))?;
            }
            2 => {
                let cut = self.chance.millis(500..60_000);
                self.processes[number].cut_until = self.now + cut;
            }
            3 => {
                let hang = self.chance.millis(1_000..60_000);
                self.processes[number].watched_until = self.now + hang;
            }
            4 => self.stop_process(number, Stop::Release)?,
            5 => self.stop_process(number, Stop::Hold(Duration::from_secs(60)))?,
            6 => self.delete_lease(number),
            _ => self.reweigh(number),
        }
        Ok(())
    }

    fn delete_lease(&mut self, number: usize) {
        let key = (self.processes[number].id.clone(), "shop".to_owned());
        if self.server.leases.contains_key(&key) {
            let deleted = self.server.delete_lease(&key.0, &key.1, None);
            deleted.expect("the Lease was just seen");
        }
    }

    /// Tables turn, and sometimes turn back while objects are draining.
    pub(super) fn reweigh(&mut self, number: usize) {
        let weight = WEIGHTS[self.chance.below(WEIGHTS.len())];
        // A weight outlives restarts, and somebody has to take the objects.
        let weight = if number == 0 && weight == "0" { "100" } else { weight };
        self.set_weight(number, Some(weight.to_owned()));
    }

    pub(crate) fn set_weight(&mut self, number: usize, weight: Option<String>) {
        let key = (self.processes[number].id.clone(), "shop".to_owned());
        let Some(lease) = self.server.leases.get(&key).cloned() else { return };
        let now = self.wall();
        let changed = self.server.put_lease(Lease { weight, ..lease }, false, true, now);
        changed.expect("the Lease was just read");
    }
}
