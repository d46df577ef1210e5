//! Both sides, step by step, until the first difference.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::exceptions::{self, Exception};
use super::generate::{Generator, Profile, World};
use super::side::Side;
use super::step::Step;
use crate::client::Client;
use crate::wait::{Level, wait_for};

/// How long two stores may take to tell their watches the same.
const SAME_WAIT: Duration = Duration::from_secs(5);

/// How many of the steps before a difference are printed; the seed gives the others.
const STEPS_SHOWN: usize = 12;

/// What to compare.
pub struct Comparison {
    pub seed: u64,
    pub steps: usize,
    pub profile: Profile,
    pub exceptions: &'static [Exception],
    /// How to run it again; printed with a difference.
    pub replay: String,
    /// Where all steps up to a difference are written.
    pub record: PathBuf,
}

/// What a run without a difference came to.
#[derive(Debug, Default)]
pub struct Summary {
    /// How often each kind of step was taken.
    pub kinds: BTreeMap<String, usize>,
    /// How often each known difference was met.
    pub excepted: BTreeMap<&'static str, usize>,
    /// How many answers were errors, the same on both sides.
    pub errors: usize,
}

struct Run {
    comparison: Comparison,
    left: Side,
    right: Side,
    world: World,
    taken: Vec<Step>,
    summary: Summary,
}

/// Runs the sequence on two fresh stores.
///
/// # Errors
///
/// At the first difference, with the seed, the step, both answers and the steps before.
pub async fn compare(left: Client, right: Client, comparison: Comparison) -> Result<Summary> {
    let mut run = Run {
        left: Side::new(left),
        right: Side::new(right),
        world: World::default(),
        taken: Vec::new(),
        summary: Summary::default(),
        comparison,
    };
    let mut generator = Generator::new(run.comparison.seed, run.comparison.profile);
    for _ in 0..run.comparison.steps {
        let step = generator.next_step();
        run.take(step).await?;
        generator.on_answer(run.world);
    }
    run.take(Step::Settle).await?;
    Ok(run.summary)
}

// === impl Run ===

impl Run {
    async fn take(&mut self, step: Step) -> Result<()> {
        *self.summary.kinds.entry(step.kind()).or_default() += 1;
        self.taken.push(step.clone());
        let outcome = match step {
            Step::Settle => self.settle().await,
            step => self.ask(&step).await,
        };
        match outcome {
            Ok(()) => Ok(()),
            Err(difference) => {
                self.write_record()?;
                Err(difference.context(self.story()))
            }
        }
    }

    async fn ask(&mut self, step: &Step) -> Result<()> {
        let (left, right) = tokio::join!(self.left.execute(step), self.right.execute(step));
        let (left, right) = (left.context("left")?, right.context("right")?);
        self.summary.errors += usize::from(left.get("error").is_some());
        if left != right {
            let reason = exceptions::reason(self.comparison.exceptions, step, &left, &right);
            let Some(reason) = reason else { bail!("{}", difference(&left, &right)) };
            *self.summary.excepted.entry(reason).or_default() += 1;
        }
        self.learn(step, &left);
        Ok(())
    }

    fn learn(&mut self, step: &Step, answer: &Value) {
        let revision = answer["header"]["revision"].as_str().and_then(|text| text.parse().ok());
        self.world.revision = self.world.revision.max(revision.unwrap_or(0));
        if let (Step::Compact(request), None) = (step, answer.get("error")) {
            self.world.compacted = request.revision;
        }
    }

    /// Logs are compared from their beginning, so that what comes too late is found by the next
    /// comparison.
    async fn settle(&mut self) -> Result<()> {
        let revision = self.world.revision;
        let (left, right) = tokio::join!(self.left.settle(revision), self.right.settle(revision));
        left.context("left")?;
        right.context("right")?;
        wait_for("the watches of both stores to be told the same", SAME_WAIT, async || {
            let [left_main, left_stray] = self.left.logs().await?;
            let [right_main, right_stray] = self.right.logs().await?;
            let sides = [(left_main, right_main), (left_stray, right_stray)];
            Ok(match sides.into_iter().find(|(left, right)| left != right) {
                None => Level::Reached(()),
                Some((left, right)) => Level::Below(first_difference(&left, &right)),
            })
        })
        .await
    }

    fn write_record(&self) -> Result<()> {
        let lines = self.taken.iter().zip(1..).map(|(step, at)| format!("{at}: {step:?}\n"));
        let record = &self.comparison.record;
        fs::write(record, lines.collect::<String>())
            .with_context(|| format!("write {}", record.display()))
    }

    fn story(&self) -> String {
        let Comparison { seed, profile, replay, .. } = &self.comparison;
        let count = self.taken.len();
        let mut story = format!(
            "the stores differ: {profile:?}, seed {seed}, step {count}\nreplay: \
             WINDLASS_DIFFERENTIAL_SEED={seed} WINDLASS_DIFFERENTIAL_STEPS={count} {replay}\n"
        );
        let first = count.saturating_sub(STEPS_SHOWN);
        let shown = self.taken.iter().enumerate().skip(first);
        story.extend(
            shown.map(|(at, step)| format!("  {}: {}\n", at + 1, short(&format!("{step:?}")))),
        );
        story
    }
}

fn difference(left: &Value, right: &Value) -> String {
    format!("left:  {}\nright: {}", short(&left.to_string()), short(&right.to_string()))
}

fn first_difference(left: &super::watching::Log, right: &super::watching::Log) -> String {
    let ids = left.keys().chain(right.keys());
    for id in ids {
        let (one, other) = (left.get(id), right.get(id));
        if one != other {
            return format!("watch {id}\nleft:  {}\nright: {}", list(one), list(other));
        }
    }
    "nothing".to_owned()
}

fn list(log: Option<&Vec<Value>>) -> String {
    short(&log.map_or_else(|| "nothing".to_owned(), |log| Value::from(log.clone()).to_string()))
}

/// Long values are long for the sake of a limit; nobody wants to read them.
fn short(text: &str) -> String {
    const SHOWN_MAX: usize = 6000;
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}
