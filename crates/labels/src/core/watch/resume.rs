//! Where a watcher goes on after it was away. It decides from positions and times it is given; it
//! never reads or writes the `resume` object itself.

use std::{
    cmp::Ordering,
    time::{Duration, Instant},
};

use crate::core::{
    keys::{MANAGED_BY, MANAGER, RV},
    object::Document,
    rank::Rank,
    rv::{ResourceVersion, RvError},
};

/// The ConfigMap that keeps the position.
pub const NAME: &str = "resume";

/// The kept position is written at most this often: it spares the replay of what happened since,
/// nothing else.
pub const WRITE_EVERY: Duration = Duration::from_secs(10);

/// A position that has not moved for so long is looked after by every watcher, not by the first
/// alone.
pub const STALE_AFTER: Duration = Duration::from_secs(30);

/// How to begin a watch on nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begin {
    /// Everything after the position is replayed.
    Watch {
        from: ResourceVersion,
    },
    Relist(Reason),
}

/// Why events cannot be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Nothing was kept: a first start.
    NoPosition,
    /// The server is behind what we have seen: its storage was restored from a backup. A watch from
    /// a position in the future would wait in silence until it is reached.
    WentBack,
    /// The server no longer has the events.
    Expired,
}

/// A ConfigMap that keeps a position; to replace one, add its uid and version. Like everything that
/// is watched without its data, it says so in an annotation.
#[must_use]
pub fn encode(position: &ResourceVersion) -> Document {
    Document {
        name: NAME.to_owned(),
        labels: [(MANAGED_BY.to_owned(), MANAGER.to_owned())].into(),
        annotations: [(RV.to_owned(), position.to_string())].into(),
        ..Document::default()
    }
}

/// The position that a ConfigMap keeps, if it keeps one.
pub fn decode(document: &Document) -> Result<Option<ResourceVersion>, RvError> {
    document.annotations.get(RV).map(|text| text.parse()).transpose()
}

/// Decides from the position to go on from and the server's position, by quorum read.
#[must_use]
pub fn begin(position: Option<ResourceVersion>, server: &ResourceVersion) -> Begin {
    match position {
        None => Begin::Relist(Reason::NoPosition),
        Some(position) if *server < position => Begin::Relist(Reason::WentBack),
        Some(position) => Begin::Watch { from: position },
    }
}

/// Keeps the highest watermark of all watchers.
#[derive(Debug, Default)]
pub struct Resume {
    kept: Option<Kept>,
    attempted: Option<Instant>,
}

/// The kept position, and since when we see it.
#[derive(Debug)]
struct Kept {
    position: ResourceVersion,
    since: Instant,
    /// Nobody can go on from it: its history is forgotten, or is no more.
    is_useless: bool,
}

/// What to do about the kept position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Nothing,
    Write {
        position: ResourceVersion,
    },
    /// It is ahead of us and nobody moves it. Ask the server for its position: if that is lower
    /// still, history went back, and ours has to be written.
    Verify {
        kept: ResourceVersion,
        position: ResourceVersion,
    },
}

// === impl Reason ===

impl Reason {
    /// The reason as metrics and logs name it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoPosition => "no_position",
            Self::WentBack => "went_back",
            Self::Expired => "expired",
        }
    }
}

// === impl Resume ===

impl Resume {
    /// The kept position was seen; none, if there is no such object.
    pub fn on_seen(&mut self, position: Option<ResourceVersion>, now: Instant) {
        let is_known = self.kept.as_ref().map(|kept| &kept.position) == position.as_ref();
        if !is_known {
            self.kept = position.map(|position| Kept { position, since: now, is_useless: false });
        }
    }

    /// Events could not be replayed from what is kept. It is replaced without waiting until it is
    /// stale: whoever starts before that would not see what happens from now on.
    pub fn on_relisted(&mut self) {
        if let Some(kept) = &mut self.kept {
            kept.is_useless = true;
        }
    }

    /// What to do, if it is done at once: the next step comes [`WRITE_EVERY`] later at the earliest.
    pub fn step(&mut self, watermark: &ResourceVersion, rank: Rank, now: Instant) -> Step {
        let has_rested = self.attempted.is_none_or(|at| now.duration_since(at) >= WRITE_EVERY);
        let step = if has_rested { self.plan(watermark, rank, now) } else { Step::Nothing };
        if step != Step::Nothing {
            self.attempted = Some(now);
        }
        step
    }

    /// What to do before the end: the last word, if it says more than what is kept.
    #[must_use]
    pub fn last_step(&self, watermark: &ResourceVersion) -> Step {
        match &self.kept {
            Some(kept) if kept.position >= *watermark => Step::Nothing,
            _ => Step::Write { position: watermark.clone() },
        }
    }

    fn plan(&self, watermark: &ResourceVersion, rank: Rank, now: Instant) -> Step {
        let write = Step::Write { position: watermark.clone() };
        let Some(Kept { position: kept, since, is_useless }) = &self.kept else { return write };
        let age = now.duration_since(*since);
        let is_stale = *is_useless || age >= STALE_AFTER;
        match watermark.cmp(kept) {
            Ordering::Greater if is_stale => write,
            Ordering::Greater if rank == Rank::FIRST && age >= WRITE_EVERY => write,
            Ordering::Less if is_stale => {
                Step::Verify { kept: kept.clone(), position: watermark.clone() }
            }
            _ => Step::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rv(text: &str) -> ResourceVersion {
        text.parse().unwrap()
    }

    fn write(position: &str) -> Step {
        Step::Write { position: rv(position) }
    }

    fn verify(kept: &str, position: &str) -> Step {
        Step::Verify { kept: rv(kept), position: rv(position) }
    }

    #[test]
    fn a_watch_begins_where_events_can_be_replayed() {
        let begin = |position: Option<&str>, server: &str| begin(position.map(rv), &rv(server));
        assert_eq!(begin(None, "7"), Begin::Relist(Reason::NoPosition));
        assert_eq!(begin(Some("100"), "99"), Begin::Relist(Reason::WentBack));
        assert_eq!(begin(Some("100"), "100"), Begin::Watch { from: rv("100") });
        assert_eq!(begin(Some("99"), "100"), Begin::Watch { from: rv("99") });
    }

    #[test]
    fn a_position_is_read_as_it_was_written() {
        assert_eq!(decode(&encode(&rv("4122"))), Ok(Some(rv("4122"))));
        assert_eq!(decode(&Document::default()), Ok(None));
        let mut broken = encode(&rv("1"));
        broken.annotations.insert(RV.to_owned(), "x".to_owned());
        assert!(decode(&broken).is_err());
    }

    /// The step of a watcher that saw `kept` that many seconds ago.
    #[track_caller]
    fn check(kept: Option<&str>, seconds: u64, watermark: &str, ranks: [(Rank, Step); 2]) {
        let start = tokio::time::Instant::now().into_std();
        for (rank, expected) in ranks {
            let mut resume = Resume::default();
            resume.on_seen(kept.map(rv), start);
            let step = resume.step(&rv(watermark), rank, start + Duration::from_secs(seconds));
            assert_eq!(step, expected, "{rank:?}");
        }
    }

    #[test]
    fn the_first_watcher_writes_and_the_others_when_it_does_not() {
        let both = |first, others| [(Rank::FIRST, first), (Rank::THIRD, others)];
        check(None, 0, "7", both(write("7"), write("7")));
        check(Some("5"), 9, "7", both(Step::Nothing, Step::Nothing));
        check(Some("5"), 10, "7", both(write("7"), Step::Nothing));
        check(Some("5"), 29, "7", both(write("7"), Step::Nothing));
        check(Some("5"), 30, "7", both(write("7"), write("7")));
        check(Some("7"), 30, "7", both(Step::Nothing, Step::Nothing));
        check(Some("9"), 29, "7", both(Step::Nothing, Step::Nothing));
        check(Some("9"), 30, "7", both(verify("9", "7"), verify("9", "7")));
    }

    #[test]
    fn attempts_are_ten_seconds_apart_whatever_became_of_them() {
        let start = tokio::time::Instant::now().into_std();
        let mut resume = Resume::default();
        let mut step =
            |seconds| resume.step(&rv("7"), Rank::FIRST, start + Duration::from_secs(seconds));
        assert_eq!(step(0), write("7"));
        assert_eq!(step(9), Step::Nothing);
        assert_eq!(step(10), write("7"));
    }

    #[test]
    fn a_position_that_moves_is_not_stale() {
        let start = tokio::time::Instant::now().into_std();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut resume = Resume::default();
        resume.on_seen(Some(rv("8")), at(0));
        resume.on_seen(Some(rv("9")), at(20));
        resume.on_seen(Some(rv("9")), at(40));
        assert_eq!(resume.step(&rv("7"), Rank::FIRST, at(49)), Step::Nothing);
        assert_eq!(resume.step(&rv("7"), Rank::FIRST, at(50)), verify("9", "7"));
    }

    #[test]
    fn what_nobody_can_go_on_from_is_replaced_at_once() {
        let start = tokio::time::Instant::now().into_std();
        for rank in [Rank::FIRST, Rank::THIRD] {
            let mut resume = Resume::default();
            resume.on_seen(Some(rv("50")), start);
            resume.on_relisted();
            assert_eq!(resume.step(&rv("80"), rank, start), write("80"));
        }
    }

    #[test]
    fn after_history_went_back_the_kept_position_is_doubted_at_once() {
        let start = tokio::time::Instant::now().into_std();
        let mut resume = Resume::default();
        resume.on_seen(Some(rv("900")), start);
        resume.on_relisted();
        assert_eq!(resume.step(&rv("80"), Rank::FIRST, start), verify("900", "80"));
        resume.on_seen(Some(rv("80")), start);
        assert_eq!(resume.last_step(&rv("80")), Step::Nothing);
        assert_eq!(resume.last_step(&rv("81")), write("81"));
    }
}
