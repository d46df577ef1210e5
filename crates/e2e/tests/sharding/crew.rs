//! A ring and its instances as real processes, whose work is judged when the case is over.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use e2e::sharding::arena::{LEASE_PATIENT, SETTLE_WAIT};
use e2e::sharding::{Arena, Instance, InstanceOptions, monotonic};
use e2e::wait::{Level, wait_for};
use futures::future::join_all;
use serde_json::Value;
use sharding::core::history::History;

use crate::stage::Stage;

/// Enough that each of five instances has some.
pub(crate) const OBJECTS: usize = 40;

pub(crate) struct Crew {
    pub(crate) arena: Arena,
    members: BTreeMap<String, Instance>,
}

/// An instance that falls silent, for a while or for ever: soon enough to be waited for, and late enough
/// that a busy machine does not silence it.
pub(crate) fn patient() -> InstanceOptions {
    InstanceOptions { lease: LEASE_PATIENT, ..InstanceOptions::default() }
}

/// An instance that is at everything at once, and takes some seconds over it.
pub(crate) fn slow(options: InstanceOptions) -> InstanceOptions {
    let flags = vec![format!("--workers={OBJECTS}"), "--delay-ms=3000".to_owned()];
    InstanceOptions { flags, ..options }
}

/// Whose each object is.
pub(crate) type Owners = BTreeMap<String, String>;

// === impl Crew ===

impl Crew {
    /// Instances that have come to rest, each with objects that it has worked on.
    pub(crate) async fn assemble(
        stage: &Stage,
        name: &str,
        changes: &Value,
        ids: &[&str],
    ) -> Result<(Self, Owners)> {
        let members: Vec<_> = ids.iter().map(|id| (*id, InstanceOptions::default())).collect();
        Self::assemble_with(stage, name, changes, &members).await
    }

    pub(crate) async fn assemble_with(
        stage: &Stage,
        name: &str,
        changes: &Value,
        members: &[(&str, InstanceOptions)],
    ) -> Result<(Self, Owners)> {
        let arena = stage.arena(name, changes).await?;
        arena.populate("site", OBJECTS).await?;
        let mut crew = Self { arena, members: BTreeMap::new() };
        for (id, options) in members {
            crew.join_as(stage, id, options).await?;
        }
        let owners = crew.settle().await?;
        Ok((crew, owners))
    }

    /// Starts an instance, without waiting for it.
    pub(crate) async fn join(&mut self, stage: &Stage, id: &str) -> Result<()> {
        self.join_as(stage, id, &InstanceOptions::default()).await
    }

    pub(crate) async fn join_as(
        &mut self,
        stage: &Stage,
        id: &str,
        options: &InstanceOptions,
    ) -> Result<()> {
        let instance = stage.world.instance_with(&mut self.arena, id, options).await?;
        self.members.insert(id.to_owned(), instance);
        Ok(())
    }

    /// Changes every object until a slow instance is at the beginning of its work on each of its own.
    /// What is stopped then is stopped in a wait, not between two words to its history.
    pub(crate) async fn keep_busy(&mut self, id: &str) -> Result<()> {
        let Self { arena, members } = self;
        let member = members.get(id).with_context(|| format!("{id} is not running"))?;
        let mut touched = None;
        wait_for(&format!("{id} to be at work"), SETTLE_WAIT, async || {
            let standings = arena.standings().await?;
            let own = standings.values().filter(|it| it.shard.as_deref() == Some(id)).count();
            let begun = member.begun()?;
            let fresh = begun.values().filter(|at| touched.is_some_and(|since| **at > since));
            let fresh = fresh.count();
            if fresh >= own {
                return Ok(Level::Reached(()));
            }
            // Those that began too long before the others have ended: once more, all together.
            if begun.is_empty() || touched.is_none() {
                touched = Some(monotonic());
                arena.touch().await?;
            }
            Ok(Level::Below(format!("at work on {fresh} of {own}")))
        })
        .await
    }

    pub(crate) fn member(&mut self, id: &str) -> Result<&mut Instance> {
        self.members.get_mut(id).with_context(|| format!("{id} is not running"))
    }

    fn take(&mut self, id: &str) -> Result<Instance> {
        self.members.remove(id).with_context(|| format!("{id} is not running"))
    }

    /// SIGTERM, and an orderly end.
    pub(crate) async fn leave(&mut self, id: &str) -> Result<()> {
        self.take(id)?.stop().await
    }

    pub(crate) fn kill(&mut self, id: &str) -> Result<()> {
        let instance = self.take(id)?;
        instance.kill(&mut self.arena)
    }

    pub(crate) async fn pause(&mut self, id: &str) -> Result<()> {
        let instance = self.members.get(id).with_context(|| format!("{id} is not running"))?;
        instance.pause(&mut self.arena).await
    }

    /// Waits for an instance that has lost its Lease to end by itself.
    pub(crate) async fn wait_end(&mut self, id: &str) -> Result<()> {
        self.take(id)?.wait_end(SETTLE_WAIT).await?;
        Ok(())
    }

    /// Starts whoever has ended, as a kubelet would; who that was.
    pub(crate) async fn restart_ended(&mut self, stage: &Stage) -> Result<BTreeSet<String>> {
        let ended = self
            .members
            .iter_mut()
            .filter_map(|(id, instance)| instance.ensure_alive().is_err().then(|| id.clone()));
        let ended: BTreeSet<String> = ended.collect();
        for id in &ended {
            self.members.remove(id);
            self.join(stage, id).await?;
        }
        Ok(ended)
    }

    /// Waits until all objects are those of the members and have been worked on.
    pub(crate) async fn settle(&mut self) -> Result<Owners> {
        let ids: Vec<&str> = self.members.keys().map(String::as_str).collect();
        let owners = self.arena.wait_spread(&ids).await?;
        self.arena.wait_worked().await?;
        self.members.values_mut().try_for_each(Instance::ensure_alive)?;
        Ok(owners)
    }

    /// Comes to rest, is judged, and goes.
    pub(crate) async fn finish(mut self, stage: &Stage) -> Result<History> {
        self.settle().await?;
        let testimony = self.arena.testimony(&stage.world).await?;
        let history = self.arena.judge(&stage.world).await?;
        history.check_settled(testimony.end(), SETTLE_WAIT)?;
        let ends = self.members.into_values().map(Instance::stop);
        join_all(ends).await.into_iter().collect::<Result<()>>()?;
        self.arena.close().await?;
        Ok(history)
    }
}

/// What moved, and to whom, must be this.
pub(crate) fn only_moves(
    before: &Owners,
    after: &Owners,
    is_allowed: impl Fn(&str, &str) -> bool,
) -> Result<usize> {
    let moved = before.iter().filter_map(|(name, from)| {
        let to = after.get(name)?;
        (from != to).then_some((name, from, to))
    });
    let moved: Vec<_> = moved.collect();
    let wrong: Vec<_> = moved.iter().filter(|(_, from, to)| !is_allowed(from, to)).collect();
    ensure!(wrong.is_empty(), "moved and should not: {wrong:?}");
    Ok(moved.len())
}
