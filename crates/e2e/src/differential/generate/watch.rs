//! Watches: every option, starts in the past, below the compaction and in the future.

use bytes::Bytes;
use etcd_api::etcdserverpb as pb;

use super::super::step::{Step, Stream};
use super::Generator;

/// Ids a client chooses itself; few, so that they collide.
const OWN_IDS: usize = 6;

// === impl Generator ===

impl Generator {
    pub(super) fn watch_step(&mut self) -> Step {
        match self.below(10) {
            0..4 => self.past_watch_step(),
            4 => Step::Watch(Stream::Stray, self.future_watch()),
            5..7 => self.unwatch_step(),
            _ => Step::Settle,
        }
    }

    /// A watch that may have to catch up is given the time to, so that what follows finds it at
    /// the same place on both sides.
    fn past_watch_step(&mut self) -> Step {
        self.planned.push_back(Step::Settle);
        let start_revision = match self.below(4) {
            0 => 0,
            1 => self.world.revision,
            _ => self.any_revision().min(self.world.revision),
        };
        let is_compacted =
            start_revision < 0 || (1..self.world.compacted).contains(&start_revision);
        let stream = if is_compacted { Stream::Stray } else { Stream::Main };
        Step::Watch(stream, self.watch_request(start_revision))
    }

    fn future_watch(&mut self) -> pb::WatchCreateRequest {
        let start_revision = self.world.revision + 1 + self.below(20) as i64;
        self.watch_request(start_revision)
    }

    fn watch_request(&mut self, start_revision: i64) -> pb::WatchCreateRequest {
        let (key, range_end) = self.interval();
        let filters = match self.below(8) {
            0 => vec![0],
            1 => vec![1],
            2 => vec![0, 1],
            _ => Vec::new(),
        };
        pb::WatchCreateRequest {
            key: if self.one_in(20) { Bytes::new() } else { key },
            range_end,
            start_revision,
            progress_notify: false,
            filters,
            prev_kv: self.one_in(2),
            watch_id: if self.one_in(5) { self.below(OWN_IDS) as i64 + 1 } else { 0 },
            fragment: self.one_in(4),
        }
    }

    /// What was on its way to a watch may or may not arrive once it is cancelled.
    fn unwatch_step(&mut self) -> Step {
        let watch_id = self.below(12) as i64;
        self.planned.push_back(Step::Unwatch(pb::WatchCancelRequest { watch_id }));
        self.planned.push_back(Step::Settle);
        Step::Settle
    }
}
