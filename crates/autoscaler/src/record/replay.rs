//! Lines run again, one after the other: the registry and the planners are given what they were given,
//! and have to come to what they came to.

use std::collections::VecDeque;
use std::fmt::Debug;

use jiff::Timestamp;
use registry::{Decision, Facts, Registry, RestoreError};

use super::{Change, Decided, Entry, Header, Line, STEPS, Seen, Start, VERSION};
use crate::core::iteration::Next;
use crate::core::{Action, Config, Drains, Inputs, Iteration, Memory, World};
use crate::world::Preferences;

/// Other decisions from the same.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at {now} other decisions come of the same")]
pub struct Difference {
    pub now: Timestamp,
    pub recorded: String,
    pub again: String,
}

/// Runs lines again, one after the other.
#[derive(Debug)]
pub struct Replay {
    rules: registry::Config,
    plans: Config,
    preferences: Preferences,
    /// Since the last line that said where everything stood.
    course: Option<Course>,
    /// Iterations that came out the same.
    pub iterations: usize,
    /// Iterations that were not written.
    pub dropped: u64,
}

/// What goes on from line to line.
#[derive(Debug)]
struct Course {
    registry: Registry,
    memory: Memory,
    seen: Seen,
    world: World,
    now: Timestamp,
}

/// What an iteration went by.
struct Look {
    now: Timestamp,
    seed: u64,
    facts: Facts,
    decisions: Vec<Decision>,
}

/// Why lines cannot be run again, or do not come out the same.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("this is no record of iterations")]
    Header(#[source] serde_json::Error),
    #[error("the record has version {0}, and {VERSION} is the one that is known")]
    Version(u64),
    #[error("a line cannot be read")]
    Line(#[source] serde_json::Error),
    #[error("a state cannot be read")]
    State(#[source] RestoreError),
    #[error("nothing says where everything stood before the first iteration")]
    NoStart,
    #[error("the expanders of the record are not known")]
    Expanders(#[source] fit::expand::Error),
    #[error(transparent)]
    Different(Box<Difference>),
}

// === impl Replay ===

impl Replay {
    pub fn begin(header: &str) -> Result<Self, Error> {
        let found: serde_json::Value = serde_json::from_str(header).map_err(Error::Header)?;
        match found.get("version").and_then(serde_json::Value::as_u64) {
            Some(version) if version != u64::from(VERSION) => return Err(Error::Version(version)),
            _ => {}
        }
        let header: Header = serde_json::from_value(found).map_err(Error::Header)?;
        Ok(Self {
            rules: header.registry,
            plans: header.plans,
            preferences: Preferences::new(header.expander),
            course: None,
            iterations: 0,
            dropped: 0,
        })
    }

    pub fn line(&mut self, line: &str) -> Result<(), Error> {
        let Line { start, entries } = serde_json::from_str(line).map_err(Error::Line)?;
        if let Some(start) = start {
            self.dropped += start.dropped;
            self.course = Some(Course::new(start, &self.rules)?);
        }
        let mut course = self.course.take().ok_or(Error::NoStart)?;
        let mut entries = VecDeque::from(entries);
        while let Some(entry) = entries.pop_front() {
            match entry {
                Entry::Looked { now, seed, facts, change, decisions } => {
                    let config = self.look(&mut course, change)?;
                    let look = Look { now, seed, facts, decisions };
                    course.think(&look, &config, &mut entries)?;
                }
                entry => course.repeat(entry, &self.plans)?,
            }
        }
        self.course = Some(course);
        self.iterations += 1;
        Ok(())
    }

    /// The cluster as it was looked at, and how groups were chosen on it.
    fn look(&mut self, course: &mut Course, change: Change) -> Result<Config, Error> {
        course.see(change);
        // Who recorded it has told about priorities that cannot be read; the last good ones count.
        self.preferences.follow(course.seen.snapshot.priorities.as_ref()).unwrap_or_default();
        let mut config = self.plans.clone();
        config.scale_up.expanders = self.preferences.expanders().map_err(Error::Expanders)?;
        Ok(config)
    }
}

// === impl Course ===

impl Course {
    fn new(start: Start, rules: &registry::Config) -> Result<Self, Error> {
        let Start { now, state, memory, .. } = start;
        let registry = Registry::restore(rules.clone(), state.as_bytes(), now);
        Ok(Self {
            registry: registry.map_err(Error::State)?,
            memory: memory.into(),
            seen: Seen::default(),
            world: World::default(),
            now,
        })
    }

    fn see(&mut self, change: Change) {
        self.seen.apply(change);
        self.world = self.seen.world();
    }

    /// One iteration. Where the entries end before it does, whoever recorded it was stopped.
    fn think(
        &mut self,
        look: &Look,
        config: &Config,
        entries: &mut VecDeque<Entry>,
    ) -> Result<(), Error> {
        let Look { now, seed, facts, decisions } = look;
        self.now = *now;
        let again = self.registry.clone().observe(*now, facts).decisions;
        self.compare(decisions, &again)?;
        let world = self.world.clone();
        let inputs = Inputs { now: *now, seed: *seed, facts, world: &world, config };
        let mut iteration = Iteration::begin(inputs, &mut self.registry, &self.memory);
        let mut looks = 0;
        loop {
            match iteration.next(&mut self.registry, &mut self.memory, STEPS) {
                Next::Act(action) => match self.effect(&action, config, entries)? {
                    Some(effect) => iteration.on_effect(&effect, &mut self.memory),
                    None => return Ok(()),
                },
                Next::Working => {
                    looks += 1;
                    if matches!(entries.front(), Some(Entry::Cut { after }) if *after == looks) {
                        entries.pop_front();
                        iteration.cut();
                    }
                }
                Next::Ended => break,
            }
        }
        let again = Decided::of(&iteration.into_account());
        match entries.pop_front() {
            None => Ok(()),
            Some(Entry::Decided(recorded)) => self.compare(&recorded, &again),
            Some(entry) => self.compare(&format!("{entry:?}"), &format!("{again:?}")),
        }
    }

    /// What came of an action, with what was put into the registry meanwhile.
    fn effect(
        &mut self,
        action: &Action,
        config: &Config,
        entries: &mut VecDeque<Entry>,
    ) -> Result<Option<crate::core::Effect>, Error> {
        while let Some(entry) = entries.pop_front() {
            match entry {
                Entry::Acted { action: recorded, effect } => {
                    self.compare(&recorded, action)?;
                    return Ok(Some(effect));
                }
                Entry::Decided(recorded) => {
                    self.compare(&format!("{recorded:?}"), &format!("{action:?}"))?;
                }
                entry => self.repeat(entry, config)?,
            }
        }
        Ok(None)
    }

    /// Everything but thinking.
    fn repeat(&mut self, entry: Entry, config: &Config) -> Result<(), Error> {
        match entry {
            // An intent that was refused was not entered, so it cannot be refused now.
            Entry::Recorded { now, outcome } => _ = self.registry.record(now, &outcome),
            Entry::TargetsRead(targets) => self.registry.refresh_targets(&targets),
            Entry::Stepped { now, change, commands, ends } => {
                self.now = now;
                change.into_iter().for_each(|change| self.see(change));
                let sights = (&self.world, &self.registry);
                let again = self.memory.drains.step(now, sights, config);
                for end in &again.1 {
                    self.memory.on_drain_end(end, now, config);
                }
                self.compare(&(commands, ends), &again)?;
            }
            Entry::Replied { now, node, reply } => {
                self.memory.on_drain_reply((&node, reply), now, config);
            }
            Entry::NoneRemoved => self.memory.drains = Drains::default(),
            // Of an iteration that has ended, so here it is one too many.
            entry @ (Entry::Cut { .. } | Entry::Acted { .. } | Entry::Decided(_)) => {
                self.compare(&format!("{entry:?}"), &"nothing".to_owned())?;
            }
            Entry::Looked { .. } => {}
        }
        Ok(())
    }

    fn compare<T: PartialEq + Debug>(&self, recorded: &T, again: &T) -> Result<(), Error> {
        if recorded == again {
            return Ok(());
        }
        Err(Error::Different(Box::new(Difference {
            now: self.now,
            recorded: format!("{recorded:#?}"),
            again: format!("{again:#?}"),
        })))
    }
}
