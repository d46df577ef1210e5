//! Instances that come, go, restart and die, with nothing else going on: how long until all objects
//! are where they belong, and what each move was like.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::time::Instant;

use super::{
    Options,
    fleet::{Fleet, Manner},
    instance::Pace,
    ledger::Moved,
    objects,
    report::{Crash, Gap, JOINED, LEFT, Move, REPLACED, Rolling, Spread},
    setting::Setting,
    sight::Sight,
};

/// How long the place of an instance that restarts is held.
const HOLD: Duration = Duration::from_secs(60);

/// All of it.
pub(super) struct Turns {
    pub(super) moves: Vec<Move>,
    pub(super) gap: Gap,
    pub(super) rolling: Rolling,
    pub(super) crashes: Vec<Crash>,
}

/// What is measured with one number of objects.
struct Scene<'a> {
    setting: &'a Setting,
    fleet: &'a mut Fleet,
    sight: Sight,
    objects: usize,
    manner: Manner,
    /// Each has names of its own: nobody waits for a Lease that another had.
    crew: usize,
}

pub(super) async fn measure(
    setting: &Setting,
    fleet: &mut Fleet,
    options: &Options,
    progress: &mut (dyn FnMut(&str) + Send),
) -> Result<Turns> {
    let manner = Manner { pace: Pace::OnChange, hold: None, is_alone: false };
    let sight = Sight::open(setting)?;
    let mut scene = Scene { setting, fleet, sight, objects: options.objects, manner, crew: 0 };
    scene.assemble(2).await?;
    let (joined, gaps) = scene.join(2, JOINED).await?;
    progress(&joined.to_string());
    let replaced = scene.replace(2, 3, REPLACED).await?;
    progress(&replaced.to_string());
    let left = scene.leave(3, LEFT).await?;
    progress(&left.to_string());
    let mut moves = vec![joined, left, replaced];
    let gap = Gap::of(&gaps)?;
    scene.disband().await?;
    let rolling = scene.roll().await.context("rolling restart")?;
    progress(&rolling.to_string());
    let mut crashes = Vec::new();
    for lease in &options.crash_leases {
        let crash = scene.crash(*lease, options.lease).await.context("an instance is killed")?;
        progress(&crash.to_string());
        crashes.push(crash);
    }
    if options.objects_large > options.objects {
        moves.push(scene.large(options).await.context("many objects")?);
        progress(&moves[moves.len() - 1].to_string());
    }
    Ok(Turns { moves, gap, rolling, crashes })
}

// === impl Scene ===

impl Scene<'_> {
    async fn settle(&self) -> Result<Instant> {
        self.sight.wait_settled(self.objects, &self.fleet.ids()).await
    }

    /// So many instances, and nothing on its way.
    async fn assemble(&mut self, count: usize) -> Result<()> {
        self.crew += 1;
        for number in 0..count {
            self.fleet.join(self.setting, &self.id(number), self.manner).await?;
        }
        self.settle().await?;
        Ok(())
    }

    fn id(&self, number: usize) -> String {
        format!("crew{}-{number}", self.crew)
    }

    async fn disband(&mut self) -> Result<()> {
        self.fleet.leave_all().await
    }

    /// From the start of the process to the last label.
    async fn join(&mut self, number: usize, what: &str) -> Result<(Move, Vec<Moved>)> {
        let began = Instant::now();
        self.fleet.join(self.setting, &self.id(number), self.manner).await?;
        let ended = self.settle().await.with_context(|| what.to_owned())?;
        let moved = self.sight.moves_since(began);
        Ok((self.summary(what, (began, ended), &moved), moved))
    }

    /// From the signal to the last label.
    async fn leave(&mut self, number: usize, what: &str) -> Result<Move> {
        let began = Instant::now();
        self.fleet.leave(&self.id(number)).await?;
        let ended = self.settle().await.with_context(|| what.to_owned())?;
        let moved = self.sight.moves_since(began);
        Ok(self.summary(what, (began, ended), &moved))
    }

    /// As when a pod of a Deployment is deleted: one ends in order, and another comes under its own name.
    /// From the signal to the last label.
    async fn replace(&mut self, old: usize, new: usize, what: &str) -> Result<Move> {
        let began = Instant::now();
        self.fleet.leave(&self.id(old)).await?;
        self.fleet.join(self.setting, &self.id(new), self.manner).await?;
        let ended = self.settle().await.with_context(|| what.to_owned())?;
        let moved = self.sight.moves_since(began);
        Ok(self.summary(what, (began, ended), &moved))
    }

    fn summary(&self, what: &str, (began, ended): (Instant, Instant), moved: &[Moved]) -> Move {
        let took_s = ended.saturating_duration_since(began).as_secs_f64();
        Move { what: what.to_owned(), objects: self.objects, moved: moved.len(), took_s }
    }

    /// Each instance ends in order and comes back, one after the other.
    async fn roll(&mut self) -> Result<Rolling> {
        self.manner.hold = Some(HOLD);
        self.assemble(3).await?;
        let began = Instant::now();
        for id in self.fleet.ids() {
            self.fleet.leave(&id).await?;
            self.fleet.join(self.setting, &id, self.manner).await?;
        }
        self.settle().await?;
        let moved = self.sight.moves_since(began).len();
        self.manner.hold = None;
        // Places that are held would be waited for.
        for id in self.fleet.ids() {
            self.fleet.leave(&id).await?;
            self.fleet.join(self.setting, &id, self.manner).await?;
        }
        self.disband().await?;
        Ok(Rolling { instances: 3, moved })
    }

    /// Only who is killed has a Lease of its own sort: a short one would make a busy machine kill others.
    async fn crash(&mut self, lease: Duration, usual: Duration) -> Result<Crash> {
        self.assemble(2).await?;
        self.fleet.set_lease(lease);
        self.join(2, "the one that is to be killed").await?;
        self.fleet.set_lease(usual);
        let began = Instant::now();
        self.fleet.kill(&self.id(2)).await?;
        let ended = self.settle().await?;
        let moved = self.sight.moves_since(began);
        let first = moved.iter().map(|moved| moved.at).min();
        let first = first.context("nothing was moved")?;
        ensure!(moved.iter().all(|moved| moved.gap.is_none()), "the dead gave something up");
        self.disband().await?;
        Ok(Crash {
            lease_s: lease.as_secs_f64(),
            moved: moved.len(),
            begun_in_s: (first - began).as_secs_f64(),
            took_s: ended.saturating_duration_since(first).as_secs_f64(),
        })
    }

    async fn large(&mut self, options: &Options) -> Result<Move> {
        objects::create_many(&self.setting.secrets(), self.objects, options.objects_large).await?;
        self.objects = options.objects_large;
        self.assemble(3).await?;
        let (joined, _) = self.join(3, "3 → 4").await?;
        self.disband().await?;
        Ok(joined)
    }
}

// === impl Gap ===

impl Gap {
    /// Of the moves that had one.
    fn of(moved: &[Moved]) -> Result<Self> {
        let gaps: Vec<Duration> = moved.iter().filter_map(|moved| moved.gap).collect();
        Ok(Self { moves: gaps.len(), spread: Spread::of(&gaps)? })
    }
}
