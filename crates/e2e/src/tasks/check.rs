//! Judges attempts. Pure: what the commands said of themselves and every version of every record in,
//! the violations out.
//!
//! A command can say that it ended and its task still be run again: its node may die before it tells
//! anybody. What is recorded is another matter: one end, for ever.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What a command said of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sign {
    pub task: String,
    pub attempt: u32,
    pub fence: i64,
    pub moment: Moment,
    /// Since the machine started: no step of the clock touches it.
    pub at_ms: u64,
}

/// Where in its life a command was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    Began,
    Alive,
    /// Its last act.
    Ended,
    /// A process of another attempt still held what only one may hold.
    Refused,
}

/// A task whose submission was acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submitted {
    pub task: String,
    /// Whether it is to be run again if its node is lost.
    pub restarts: bool,
}

/// A task as it was from one revision on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    pub task: String,
    pub revision: i64,
    pub state: State,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    Queued,
    Running {
        attempt: u32,
    },
    /// Told by its owner, with the code of its last attempt.
    Complete {
        attempt: u32,
        exit_code: i32,
    },
    /// Canceled or failed, in words.
    GivenUp(String),
    Deleted,
}

/// All that is known of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    pub submitted: Vec<Submitted>,
    /// In the order of revisions.
    pub versions: Vec<Version>,
    pub signs: Vec<Sign>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// Acknowledged, and there is no record of it.
    Lost { task: String },
    /// Neither ended nor given up.
    Unfinished { task: String, state: State },
    /// Its end was recorded, and then it changed.
    ChangedAfterEnd { task: String, end: State, after: State },
    /// Two attempts were alive at once.
    Overlap { task: String, attempts: [u32; 2] },
    /// May be started once at most.
    StartedAgain { task: String, attempts: Vec<u32> },
    /// No claim made such an attempt.
    Unclaimed(Sign),
    /// The fence is not the revision of the claim.
    WrongFence { sign: Sign, claimed_at: i64 },
    /// Recorded as complete with code 0 by an attempt that never came to its end.
    Invented { task: String, attempt: u32 },
}

/// What was found when nothing was wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub tasks: usize,
    pub complete: usize,
    pub given_up: usize,
    /// Attempts that began.
    pub attempts: usize,
}

/// # Errors
///
/// Everything that is wrong.
pub fn check(history: &History) -> Result<Tally, Vec<Violation>> {
    let lives = lives(history);
    let mut violations = Vec::new();
    for submitted in &history.submitted {
        match lives.get(submitted.task.as_str()) {
            Some(life) if !life.versions.is_empty() => violations.extend(judge(submitted, life)),
            _ => violations.push(Violation::Lost { task: submitted.task.clone() }),
        }
    }
    if violations.is_empty() { Ok(tally(history, &lives)) } else { Err(violations) }
}

/// What concerns one task.
#[derive(Default)]
struct Life<'a> {
    versions: Vec<&'a Version>,
    /// Of each attempt, in the order of time.
    signs: BTreeMap<u32, Vec<&'a Sign>>,
}

fn lives(history: &History) -> BTreeMap<&str, Life<'_>> {
    let mut lives: BTreeMap<&str, Life<'_>> = BTreeMap::new();
    for version in &history.versions {
        lives.entry(&version.task).or_default().versions.push(version);
    }
    for sign in &history.signs {
        let life = lives.entry(&sign.task).or_default();
        life.signs.entry(sign.attempt).or_default().push(sign);
    }
    for signs in lives.values_mut().flat_map(|life| life.signs.values_mut()) {
        signs.sort_by_key(|sign| sign.at_ms);
    }
    lives
}

fn judge(submitted: &Submitted, life: &Life<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    violations.extend(unfinished(life));
    violations.extend(changed_after_end(life));
    violations.extend(overlaps(&submitted.task, life));
    violations.extend(fences(life));
    violations.extend(invented(life));
    let began: Vec<u32> = life.signs.keys().copied().collect();
    if !submitted.restarts && began.len() > 1 {
        violations.push(Violation::StartedAgain { task: submitted.task.clone(), attempts: began });
    }
    violations
}

fn unfinished(life: &Life<'_>) -> Option<Violation> {
    let last = life.versions.last()?;
    (!last.state.is_final() && last.state != State::Deleted)
        .then(|| Violation::Unfinished { task: last.task.clone(), state: last.state.clone() })
}

/// Removing a task that has ended is no change of its end.
fn changed_after_end(life: &Life<'_>) -> Option<Violation> {
    let mut later = life.versions.iter().skip_while(|version| !version.state.is_final());
    let end = later.next()?;
    let changed = later.find(|after| after.state != end.state && after.state != State::Deleted)?;
    Some(Violation::ChangedAfterEnd {
        task: end.task.clone(),
        end: end.state.clone(),
        after: changed.state.clone(),
    })
}

fn overlaps(task: &str, life: &Life<'_>) -> Vec<Violation> {
    let spans: Vec<(u32, u64, u64)> = life
        .signs
        .iter()
        .filter_map(|(attempt, signs)| Some((*attempt, signs.first()?.at_ms, signs.last()?.at_ms)))
        .collect();
    let seen = spans.windows(2).filter(|pair| pair[0].2 > pair[1].1);
    let seen = seen.map(|pair| [pair[0].0, pair[1].0]);
    let refused = life.signs.values().flatten().filter(|sign| sign.moment == Moment::Refused);
    let felt = refused.map(|sign| [sign.attempt.saturating_sub(1), sign.attempt]);
    let pairs: BTreeSet<[u32; 2]> = seen.chain(felt).collect();
    let violation = |attempts| Violation::Overlap { task: task.to_owned(), attempts };
    pairs.into_iter().map(violation).collect()
}

fn fences(life: &Life<'_>) -> Vec<Violation> {
    let mut claims: BTreeMap<u32, i64> = BTreeMap::new();
    for version in &life.versions {
        if let State::Running { attempt } = version.state {
            claims.entry(attempt).or_insert(version.revision);
        }
    }
    let firsts = life.signs.values().filter_map(|signs| signs.first());
    let wrong = firsts.filter_map(|&sign| match claims.get(&sign.attempt) {
        None => Some(Violation::Unclaimed(sign.clone())),
        Some(&claimed_at) if claimed_at != sign.fence => {
            Some(Violation::WrongFence { sign: sign.clone(), claimed_at })
        }
        Some(_) => None,
    });
    wrong.collect()
}

fn invented(life: &Life<'_>) -> Option<Violation> {
    let complete = life.versions.iter().find_map(|version| match version.state {
        State::Complete { attempt, exit_code: 0 } => Some((&version.task, attempt)),
        _ => None,
    });
    let (task, attempt) = complete?;
    let signs = life.signs.get(&attempt);
    let has_ended = signs.is_some_and(|all| all.iter().any(|sign| sign.moment == Moment::Ended));
    (!has_ended).then(|| Violation::Invented { task: task.clone(), attempt })
}

fn tally(history: &History, lives: &BTreeMap<&str, Life<'_>>) -> Tally {
    let of_submitted = || history.submitted.iter().filter_map(|each| lives.get(each.task.as_str()));
    let is_complete = |version: &&&Version| matches!(version.state, State::Complete { .. });
    let complete = of_submitted().filter(|life| life.versions.iter().any(|it| is_complete(&it)));
    let complete = complete.count();
    Tally {
        tasks: history.submitted.len(),
        complete,
        given_up: history.submitted.len() - complete,
        attempts: of_submitted().map(|life| life.signs.len()).sum(),
    }
}

// === impl State ===

impl State {
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Complete { .. } | Self::GivenUp(_))
    }
}

// === impl Sign ===

impl Sign {
    /// From the line that the commands of [`super::ledger`] write; `None` if it is none of theirs.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let moment = match words.next()? {
            "began" => Moment::Began,
            "alive" => Moment::Alive,
            "ended" => Moment::Ended,
            "refused" => Moment::Refused,
            _ => return None,
        };
        let task = words.next()?.to_owned();
        let attempt = words.next()?.parse().ok()?;
        let fence = words.next()?.parse().ok()?;
        let (seconds, hundredths) = words.next()?.split_once('.')?;
        let at_ms = seconds.parse::<u64>().ok()? * 1000 + hundredths.parse::<u64>().ok()? * 10;
        words.next().is_none().then_some(Self { task, attempt, fence, moment, at_ms })
    }
}

// === impl Violation ===

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Violation {}
