//! The judge proven: an honest history of a handover and of a death passes; each seeded bug, put into
//! what the witnesses saw, fails.

use std::time::Duration;

use jiff::Timestamp;
use sharding::core::history::Terms;
use sharding::core::names::{Dialect, Names};

use super::*;

const SHARDER: &str = "windlass-sharder";

/// What witnesses saw, written one after the other.
struct Witnesses {
    evidence: Evidence,
    version: u64,
}

fn names() -> Names {
    let dialect = Dialect::Own { prefix: "windlass.dev".to_owned() };
    Names::new("sites".parse().unwrap(), dialect)
}

fn worker(id: &str) -> Worker {
    Worker { id: id.parse().unwrap(), incarnation: format!("{id}-first") }
}

fn terms() -> Terms {
    Terms {
        is_fenced: true,
        skew: Duration::ZERO,
        unassigned_max: Duration::from_secs(5),
        sight_max: Duration::from_secs(10),
    }
}

fn wall(seconds: u64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + i64::try_from(seconds).unwrap()).unwrap()
}

// === impl Witnesses ===

impl Witnesses {
    /// Instances `a` and `b` hold their Leases; `x` is `a`'s and has a child.
    fn new() -> Self {
        let evidence = Evidence { epoch: wall(0), ..Evidence::default() };
        let mut witnesses = Self { evidence, version: 0 };
        witnesses.lease(1, "a", "a").lease(1, "b", "b");
        witnesses.label(1, "x", "a").label(1, "child", "a");
        witnesses
    }

    fn see(&mut self, second: u64, sight: Sight) -> &mut Self {
        self.version += 1;
        let at = Duration::from_secs(second);
        self.evidence.seen.push(Seen { at, version: self.version, is_gone: false, sight });
        self
    }

    fn lease(&mut self, second: u64, id: &str, holder: &str) -> &mut Self {
        let sight = LeaseSight {
            name: id.to_owned(),
            labels: [(names().ring_label(), "sites".to_owned())].into(),
            annotations: BTreeMap::new(),
            holder: Some(holder.to_owned()),
            lasts: Duration::from_secs(if holder == SHARDER { 4 } else { 2 }),
            renewed: Some(wall(second)),
        };
        self.see(second, Sight::Lease(sight))
    }

    /// `-`, `a`, `a+` (to be given up by second 30).
    fn label(&mut self, second: u64, object: &str, text: &str) -> &mut Self {
        let shard = Some(text.trim_end_matches('+')).filter(|shard| *shard != "-");
        let shard = shard.map(|shard| (names().shard_label(), shard.to_owned()));
        let drain = text.ends_with('+').then(|| (names().drain_label(), "1700000030".to_owned()));
        let sight = ObjectSight {
            uid: object.to_owned(),
            namespace: "shop".to_owned(),
            name: object.to_owned(),
            labels: shard.into_iter().chain(drain).collect(),
            controller: (object == "child").then(|| "x".to_owned()),
        };
        self.see(second, Sight::Object(sight))
    }

    /// Somebody's write is what was seen last.
    fn written_by(&mut self, id: &str) -> &mut Self {
        let seen = self.evidence.seen.last().unwrap();
        let Sight::Object(object) = &seen.sight else { panic!("only objects are written") };
        let (uid, version) = (object.uid.clone(), seen.version);
        self.evidence.written.push(Written { uid, version, by: id.parse().unwrap() });
        self
    }

    fn work(&mut self, second: u64, id: &str, step: Step) -> &mut Self {
        let (at, uid, worker) = (Duration::from_secs(second), "x".to_owned(), worker(id));
        self.evidence.worked.push(Worked { at, uid, worker, step });
        self
    }

    fn stop(&mut self, second: u64, id: &str) -> &mut Self {
        self.evidence.stopped.push((Duration::from_secs(second), worker(id)));
        self
    }

    #[track_caller]
    fn check(&self, expected: &str) {
        self.check_on(terms(), expected);
    }

    #[track_caller]
    fn check_on(&self, terms: Terms, expected: &str) {
        let verdict = self.evidence.about(&names(), "shop").judge(terms);
        let words = verdict.map_or_else(|error| error.to_string(), |_| "nothing broken".to_owned());
        assert!(words.contains(expected), "{words}");
    }
}

#[test]
fn an_honest_handover_passes() {
    let mut it = Witnesses::new();
    it.work(2, "a", Step::Began).label(3, "x", "a+").work(4, "a", Step::Ended);
    it.label(5, "x", "-").written_by("a");
    it.label(6, "child", "b").label(7, "x", "b").work(8, "b", Step::Began);
    it.check("nothing broken");
}

#[test]
fn an_honest_death_passes_and_what_hung_may_hang_for_ever() {
    let mut it = Witnesses::new();
    it.work(2, "a", Step::Began).stop(3, "a");
    it.lease(6, "a", SHARDER).label(7, "child", "b").label(8, "x", "b").work(9, "b", Step::Began);
    it.check("nothing broken");
}

/// The watch was away, and tells of a renewal and of the death it ended in at once.
#[test]
fn a_watch_that_lags_accuses_nobody() {
    let mut it = Witnesses::new();
    it.lease(6, "a", SHARDER);
    for seen in &mut it.evidence.seen {
        seen.at = Duration::from_secs(60);
    }
    it.check_on(Terms { sight_max: Duration::from_secs(60), ..terms() }, "nothing broken");
}

/// Versions order what two watches tell of in one moment.
#[test]
fn versions_say_what_came_first() {
    let mut it = Witnesses::new();
    it.lease(6, "a", SHARDER).label(6, "child", "b");
    let count = it.evidence.seen.len();
    it.evidence.seen.swap(count - 2, count - 1);
    it.check("nothing broken");
}

#[test]
fn ack_while_busy() {
    let mut it = Witnesses::new();
    it.work(2, "a", Step::Began).label(3, "x", "a+");
    it.label(4, "x", "-").written_by("a").work(5, "a", Step::Ended);
    it.check("was given up by a (a-first), who worked on it");
}

#[test]
fn lease_loss_ignored() {
    let mut it = Witnesses::new();
    it.work(2, "a", Step::Began);
    it.lease(6, "a", SHARDER).label(7, "child", "b").label(7, "x", "b").work(8, "b", Step::Began);
    it.check("is worked on by b (b-first) and by a (a-first)");
}

/// The acknowledgement arrives after the object was taken by force and became another's.
#[test]
fn unguarded_ack() {
    let mut it = Witnesses::new();
    it.label(3, "x", "a+").label(31, "x", "b").label(32, "x", "-").written_by("a");
    it.check("a wrote to it");
    it.evidence.written.clear();
    it.check("went from b to nobody");
}

#[test]
fn children_first() {
    let mut it = Witnesses::new();
    it.label(3, "x", "a+").label(4, "child", "b");
    it.check("before its parent was given up");
}

/// The sharder writes over a renewal that it has not seen.
#[test]
fn unguarded_acquire() {
    let mut it = Witnesses::new();
    it.lease(4, "a", "a").lease(5, "a", SHARDER);
    it.check("its Lease was taken 1000 ms after it had spoken");
}

#[test]
fn dead_move_without_holding_the_lease() {
    let mut it = Witnesses::new();
    it.lease(6, "a", SHARDER).lease(7, "a", "a").label(8, "x", "b");
    it.check("went from a to b, and its owner was neither dead nor overdue");
}

#[test]
fn force_before_deadline() {
    let mut it = Witnesses::new();
    it.label(3, "x", "a+").label(29, "x", "b");
    it.check("went from a (draining) to b, and its owner was neither dead nor overdue");
}

/// It said that it had seen what it was to give up, and worked on; nothing refuses what it writes.
#[test]
fn seen_before_stopped() {
    let mut it = Witnesses::new();
    it.label(3, "x", "a+").work(4, "a", Step::Began).label(31, "x", "b");
    let unfenced = Terms { is_fenced: false, ..terms() };
    it.check_on(unfenced, "was taken by force from a (a-first), who worked on it");
    it.check("nothing broken");
}

#[test]
fn given_to_one_who_is_silent() {
    let mut it = Witnesses::new();
    it.label(3, "x", "a+").label(4, "x", "-").written_by("a").lease(4, "a", "a");
    it.label(5, "child", "b").lease(14, "a", "a").lease(16, "a", "a").label(16, "x", "b");
    it.check("given to b, who had not been ready for 13000 ms");
}

#[test]
fn parent_first() {
    let mut it = Witnesses::new();
    it.label(3, "x", "a+").label(4, "x", "-").written_by("a").label(5, "x", "b");
    it.check("and its child child is with a");
}

/// Given up in good order, and left lying.
#[test]
fn an_object_forgotten_for_a_while() {
    let mut it = Witnesses::new();
    it.label(3, "x", "a+").label(4, "x", "-").written_by("a");
    for second in 4..11 {
        it.lease(second, "b", "b");
    }
    it.label(11, "child", "b").label(11, "x", "b");
    it.check("it was nobody's for 7000 ms while somebody was ready");
}

#[test]
fn no_poll_check() {
    let mut it = Witnesses::new();
    it.work(2, "a", Step::Began).stop(3, "a");
    it.lease(6, "a", SHARDER).label(7, "child", "b").label(7, "x", "b").work(8, "b", Step::Began);
    it.work(9, "b", Step::Ended).work(10, "a", Step::Went);
    it.check("is worked on by a (a-first), after another had begun");
}
