//! When leases end. Deadlines are this process' memory: after a restart every lease has its full
//! time again, and keeping one alive touches nothing but this table.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    time::Duration,
};

use mvcc::{Keyspace, LeaseId};
use tokio::time::Instant;

/// The shortest time a lease is granted for, in seconds.
pub(crate) const TTL_MIN_S: i64 = 2;

/// The longest time a lease can be asked for, in seconds.
pub(crate) const TTL_MAX_S: i64 = 9_000_000_000;

/// Entries of leases that were revoked, beyond as many as there are leases, before the queue is made
/// anew: a lease may be granted for years and revoked at once, over and over.
const QUEUE_SPARE_MAX: usize = 1024;

/// The deadlines of all leases.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    leases: HashMap<LeaseId, Lease>,
    /// No lease ends before its entry here. Keeping a lease alive leaves the entry alone; it is moved
    /// when it comes up.
    queue: BinaryHeap<Reverse<(Instant, LeaseId)>>,
}

#[derive(Debug)]
struct Lease {
    ttl: Duration,
    ends: Instant,
    /// Once a lease was handed out as expired it cannot be kept alive any more.
    is_expired: bool,
}

/// How long a lease was granted for, and how much of it is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Remaining {
    pub(crate) granted_s: i64,
    pub(crate) remaining_s: i64,
}

// === impl Deadlines ===

impl Deadlines {
    /// Every lease has its full time.
    pub(crate) fn of(keyspace: &Keyspace, now: Instant) -> Self {
        let mut deadlines = Self::default();
        for (id, lease) in keyspace.leases().iter() {
            deadlines.grant(id, lease.ttl_s, now);
        }
        deadlines
    }

    pub(crate) fn grant(&mut self, id: LeaseId, ttl_s: i64, now: Instant) {
        let ttl = Duration::from_secs(ttl_s.max(0).cast_unsigned());
        let ends = now + ttl;
        self.leases.insert(id, Lease { ttl, ends, is_expired: false });
        self.queue.push(Reverse((ends, id)));
    }

    pub(crate) fn revoke(&mut self, id: LeaseId) {
        self.leases.remove(&id);
        if self.queue.len() > QUEUE_SPARE_MAX + 2 * self.leases.len() {
            self.queue = self.leases.iter().map(|(id, lease)| Reverse((lease.ends, *id))).collect();
        }
    }

    /// Gives a lease its full time again and returns it; `None` if it does not exist any more.
    pub(crate) fn keep_alive(&mut self, id: LeaseId, now: Instant) -> Option<Duration> {
        let lease = self.leases.get_mut(&id).filter(|lease| !lease.is_expired)?;
        lease.ends = now + lease.ttl;
        Some(lease.ttl)
    }

    pub(crate) fn remaining(&self, id: LeaseId, now: Instant) -> Option<Remaining> {
        let lease = self.leases.get(&id).filter(|lease| !lease.is_expired)?;
        let seconds = |duration: Duration| duration.as_secs().cast_signed();
        let left = lease.ends.saturating_duration_since(now);
        Some(Remaining { granted_s: seconds(lease.ttl), remaining_s: seconds(left) })
    }

    /// All leases, the one that ends first in front.
    pub(crate) fn by_end(&self) -> Vec<LeaseId> {
        let mut leases: Vec<_> = self.leases.iter().map(|(id, lease)| (lease.ends, *id)).collect();
        leases.sort_unstable();
        leases.into_iter().map(|(_, id)| id).collect()
    }

    /// Up to `max` leases whose time is over. Each is named once.
    pub(crate) fn expired(&mut self, now: Instant, max: usize) -> Vec<LeaseId> {
        let mut expired = Vec::new();
        while let Some(Reverse((at, id))) = self.queue.peek().copied()
            && at <= now
            && expired.len() < max
        {
            self.queue.pop();
            let Some(lease) = self.leases.get_mut(&id) else { continue };
            if lease.ends > now {
                self.queue.push(Reverse((lease.ends, id)));
            } else if !lease.is_expired {
                lease.is_expired = true;
                expired.push(id);
            }
        }
        expired
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: LeaseId = LeaseId(1);

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_ends_at_its_time_and_is_named_once() {
        let start = Instant::now();
        let mut deadlines = Deadlines::default();
        deadlines.grant(A, 5, start);
        assert_eq!(deadlines.expired(start + seconds(4), 10), []);
        assert_eq!(deadlines.expired(start + seconds(5), 10), [A]);
        assert_eq!(deadlines.expired(start + seconds(9), 10), []);
    }

    #[tokio::test(start_paused = true)]
    async fn keeping_alive_gives_the_full_time() {
        let start = Instant::now();
        let mut deadlines = Deadlines::default();
        deadlines.grant(A, 5, start);
        assert_eq!(deadlines.keep_alive(A, start + seconds(4)), Some(seconds(5)));
        assert_eq!(deadlines.expired(start + seconds(8), 10), []);
        let left = deadlines.remaining(A, start + seconds(8));
        assert_eq!(left, Some(Remaining { granted_s: 5, remaining_s: 1 }));
        assert_eq!(deadlines.expired(start + seconds(9), 10), [A]);
    }

    /// Line 37: a keep-alive that loses the race against expiry must not bring the lease back.
    #[tokio::test(start_paused = true)]
    async fn an_expired_lease_cannot_be_kept_alive() {
        let start = Instant::now();
        let mut deadlines = Deadlines::default();
        deadlines.grant(A, 5, start);
        deadlines.expired(start + seconds(5), 10);
        assert_eq!(deadlines.keep_alive(A, start + seconds(5)), None);
        assert_eq!(deadlines.remaining(A, start + seconds(5)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_granted_again_id_has_its_own_time() {
        let start = Instant::now();
        let mut deadlines = Deadlines::default();
        deadlines.grant(A, 5, start);
        deadlines.revoke(A);
        deadlines.grant(A, 60, start + seconds(1));
        assert_eq!(deadlines.expired(start + seconds(6), 10), []);
        assert_eq!(deadlines.expired(start + seconds(61), 10), [A]);
    }

    /// Each left its entry until its time would have come: for years, where that was the time asked for.
    #[tokio::test(start_paused = true)]
    async fn leases_that_are_revoked_leave_no_entries_for_the_rest_of_their_time() {
        let start = Instant::now();
        let mut deadlines = Deadlines::default();
        deadlines.grant(A, 5, start);
        for id in 2..100_000 {
            deadlines.grant(LeaseId(id), TTL_MAX_S, start);
            deadlines.revoke(LeaseId(id));
        }
        assert!(deadlines.queue.len() <= QUEUE_SPARE_MAX + 3, "{}", deadlines.queue.len());
        assert_eq!(deadlines.expired(start + seconds(5), 10), [A]);
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_than_asked_for_expire_at_once() {
        let start = Instant::now();
        let mut deadlines = Deadlines::default();
        (0..10).for_each(|id| deadlines.grant(LeaseId(id), 2, start));
        assert_eq!(deadlines.expired(start + seconds(3), 4).len(), 4);
        assert_eq!(deadlines.expired(start + seconds(3), 100).len(), 6);
    }
}
