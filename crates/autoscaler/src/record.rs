//! Iterations as lines of text, and those lines run again. Where lines are kept is the binary's.

use std::collections::BTreeSet;

use jiff::Timestamp;
use registry::{Config, Decision, Facts, NodeName, Outcome, Registry, RestoreError, Targets};
use serde::{Deserialize, Serialize};

/// Iterations that wait to be written: a disk that is slower is not waited for.
pub const QUEUE_MAX: usize = 8;

/// The one version there is.
const VERSION: u32 = 1;

/// What a file begins with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    version: u32,
    config: Config,
}

/// Everything that follows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Line {
    /// A leadership began, with this state.
    Term {
        now: Timestamp,
        state: String,
    },
    Iteration {
        entries: Vec<Entry>,
    },
}

/// Something put into a registry, and what came out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Entry {
    Observed { now: Timestamp, seed: u64, facts: Facts, decisions: Vec<Decision> },
    Recorded { now: Timestamp, outcome: Outcome },
    TargetsRead(Targets),
    Unneeded { now: Timestamp, nodes: BTreeSet<NodeName> },
}

/// Other decisions from the same facts.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("at {now} other decisions come of the same facts")]
pub struct Difference {
    pub now: Timestamp,
    pub recorded: Vec<Decision>,
    pub again: Vec<Decision>,
}

/// Runs lines again, one after the other.
#[derive(Debug)]
pub struct Replay {
    config: Config,
    registry: Option<Registry>,
    /// Iterations that came out the same.
    pub iterations: usize,
}

/// Why lines cannot be run again, or do not come out the same.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("this is no record of iterations")]
    Header(#[source] serde_json::Error),
    #[error("the record has version {0}, and {VERSION} is the newest known")]
    Version(u32),
    #[error("a line cannot be read")]
    Line(#[source] serde_json::Error),
    #[error("the state of a term cannot be read")]
    State(#[source] RestoreError),
    #[error("there are iterations before the first term")]
    NoTerm,
    #[error(transparent)]
    Different(Box<Difference>),
}

/// The first line of a file.
#[must_use]
pub fn header(config: &Config) -> String {
    json(&Header { version: VERSION, config: config.clone() })
}

#[must_use]
pub(crate) fn encode(line: &Line) -> String {
    json(line)
}

// === impl Replay ===

impl Replay {
    pub fn begin(header: &str) -> Result<Self, Error> {
        let header: Header = serde_json::from_str(header).map_err(Error::Header)?;
        if header.version != VERSION {
            return Err(Error::Version(header.version));
        }
        Ok(Self { config: header.config, registry: None, iterations: 0 })
    }

    pub fn line(&mut self, line: &str) -> Result<(), Error> {
        match serde_json::from_str(line).map_err(Error::Line)? {
            Line::Term { now, state } => {
                let restored = Registry::restore(self.config.clone(), state.as_bytes(), now);
                self.registry = Some(restored.map_err(Error::State)?);
            }
            Line::Iteration { entries } => {
                let registry = self.registry.as_mut().ok_or(Error::NoTerm)?;
                for entry in &entries {
                    let repeated = entry.repeat(registry);
                    repeated.map_err(|difference| Error::Different(Box::new(difference)))?;
                }
                self.iterations += 1;
            }
        }
        Ok(())
    }
}

// === impl Entry ===

impl Entry {
    /// Puts it in again. What comes out differently is returned.
    fn repeat(&self, registry: &mut Registry) -> Result<(), Difference> {
        match self {
            Self::Observed { now, facts, decisions, .. } => {
                let again = registry.observe(*now, facts).decisions;
                if again != *decisions {
                    let recorded = decisions.clone();
                    return Err(Difference { now: *now, recorded, again });
                }
            }
            // An intent that was refused was not entered, so it cannot be refused now.
            Self::Recorded { now, outcome } => _ = registry.record(*now, outcome),
            Self::TargetsRead(targets) => registry.refresh_targets(targets),
            Self::Unneeded { now, nodes } => registry.mark_unneeded(*now, nodes),
        }
        Ok(())
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("keys are text and values are finite")
}

#[cfg(test)]
mod tests {
    use registry::{Group, Options};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    fn facts(target: i64) -> registry::Facts {
        let group = Group {
            id: "a".into(),
            min: 0,
            max: 9,
            exists: true,
            options: Options::default(),
            target: Ok(target),
            instances: Ok(Vec::new()),
        };
        registry::Facts { nodes: Vec::new(), groups: Ok(vec![group]) }
    }

    /// A group misses two nodes until that is given up.
    fn recorded() -> (Config, Vec<String>) {
        let config = Config::default();
        let registry = Registry::new(config.clone());
        let state = String::from_utf8(registry.save()).unwrap();
        let mut lines = vec![encode(&Line::Term { now: at(0), state })];
        let mut registry = registry;
        for second in [0, 600, 1000] {
            let (now, facts) = (at(second), facts(2));
            let decisions = registry.observe(now, &facts).decisions;
            let entries = vec![Entry::Observed { now, seed: 0, facts, decisions }];
            lines.push(encode(&Line::Iteration { entries }));
        }
        (config, lines)
    }

    fn replayed(config: &Config, lines: &[String]) -> Result<usize, Error> {
        let mut replay = Replay::begin(&header(config))?;
        for line in lines {
            replay.line(line)?;
        }
        Ok(replay.iterations)
    }

    #[test]
    fn the_same_facts_come_to_the_same_decisions() {
        let (config, lines) = recorded();
        assert!(lines.last().unwrap().contains("ReduceTarget"), "{lines:?}");
        assert_eq!(replayed(&config, &lines).unwrap(), 3);
    }

    #[test]
    fn another_decision_is_a_difference() {
        let (config, mut lines) = recorded();
        let last = lines.last_mut().unwrap();
        *last = last.replace("\"delta\":2", "\"delta\":1");
        let error = replayed(&config, &lines).unwrap_err();
        let Error::Different(difference) = error else { panic!("{error}") };
        assert_eq!(difference.now, at(1000));
        assert_ne!(difference.recorded, difference.again);
    }

    #[test]
    fn what_is_no_record_is_told_apart() {
        let (config, lines) = recorded();
        assert!(matches!(Replay::begin("{}"), Err(Error::Header(_))));
        assert!(matches!(replayed(&config, &lines[1..]), Err(Error::NoTerm)));
        let newer = header(&config).replace("\"version\":1", "\"version\":2");
        assert!(matches!(Replay::begin(&newer), Err(Error::Version(2))));
    }
}
