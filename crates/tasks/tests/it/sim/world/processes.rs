//! Processes begin and end beside the daemons.

use tasks::core::agent::Event;
use tasks::core::status::Exit;
use tasks::core::transition::Ending;

use super::{Happening, World};
use crate::sim::Violation;
use crate::sim::runtime::{KILL_MAX, ProcessId};

// === impl World ===

impl World {
    pub(super) fn begin(&mut self, index: usize, process: ProcessId) -> Result<(), Violation> {
        let host = &mut self.hosts[index];
        let now = host.boot(self.now);
        let fence = host.runtime.processes.get(&process).map(|process| process.fence);
        let (Some(fence), Some(is_live)) = (fence, host.runtime.begin(process, now)) else {
            return Ok(());
        };
        if !is_live {
            self.end(index, process, None);
            return Ok(());
        }
        if self.plot.is_rough && self.chance.once_in(12) {
            *self.promises.start_failures.entry(process.0).or_default() += 1;
            self.end(index, process, Some(Ending::NeverStarted { message: String::new() }));
            return Ok(());
        }
        let wait = self.chance.micros(1_000..20_000_000);
        let code = i32::try_from(self.chance.below(2)).expect("small");
        let ending = Some(Ending::Exited(Exit { code, ..Exit::default() }));
        self.after(wait, Happening::End { host: index, process, ending });
        self.promises.on_start(process.0, fence)
    }

    pub(super) fn end(&mut self, index: usize, process: ProcessId, ending: Option<Ending>) {
        let Some(report) = self.hosts[index].runtime.end(process, ending) else { return };
        let (task, attempt) = process;
        let incarnation = self.hosts[index].incarnation;
        let event = Event::Reported { task, attempt, report };
        let wait = self.chance.micros(10..2_000);
        self.after(wait, Happening::Tell { host: index, incarnation, event });
    }

    pub(super) fn look_at_deadline(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        if host.boot(self.now) < host.runtime.deadline {
            return;
        }
        for process in host.runtime.stop_all() {
            let wait = self.chance.micros(100..u64::try_from(KILL_MAX.as_micros()).expect("small"));
            self.after(wait, Happening::End { host: index, process, ending: None });
        }
    }
}
