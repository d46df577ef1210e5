//! Removals under way: what each needs now is done, all at once but for calls to the provider, which
//! go one by one.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt, stream};
use registry::{GroupId, NodeName};

use super::act::mark_node;
use super::term::{Sight, Term, TermError};
use super::{Driver, tell};
use crate::cluster::{About, Cluster, Event, Mark};
use crate::core::{Command, Config, Effect, End, Evicted, PodKey, Reply, World};
use crate::provider::Provider;
use crate::record::{Change, Entry};
use crate::world;

/// Writes to the API server under way at once.
const WRITES_MAX: usize = 16;

/// What removals are stepped on.
struct Scene<'a> {
    /// What has changed since it was last recorded, if it is.
    change: Option<Change>,
    world: &'a World,
    config: &'a Config,
    /// Groups of which nothing is deleted now.
    held: BTreeSet<GroupId>,
}

// === impl Term ===

impl Term {
    /// Between iterations, on what the watches know now.
    pub(super) async fn step_drains<P: Provider, C: Cluster>(
        &mut self,
        driver: &Driver<P, C>,
    ) -> Result<(), TermError> {
        let Ok(snapshot) = driver.cluster.snapshot() else { return Ok(()) };
        let world = world::world(&snapshot, BTreeMap::new());
        let change = self.log.is_wanted().then(|| self.log.change_in(snapshot));
        let config = &driver.options.plans;
        self.step(driver, Scene { change, world: &world, config, held: BTreeSet::new() }).await?;
        self.keep(driver).await
    }

    /// Within an iteration, on what it has looked at. A group that it has touched has had its one
    /// change of size.
    pub(super) async fn step_drains_in<P: Provider, C: Cluster>(
        &mut self,
        driver: &Driver<P, C>,
        sight: &Sight,
        touched: BTreeSet<GroupId>,
    ) -> Result<(), TermError> {
        let Sight { world, config, .. } = sight;
        self.step(driver, Scene { change: None, world, config, held: touched }).await
    }

    async fn step<P: Provider, C: Cluster>(
        &mut self,
        driver: &Driver<P, C>,
        scene: Scene<'_>,
    ) -> Result<(), TermError> {
        self.may_begin(driver)?;
        let Scene { change, world, config, held } = scene;
        let now = (driver.clock)();
        let (commands, ends) = self.memory.drains.step(now, (world, &self.registry), config);
        let both = (&commands, &ends);
        self.log.enter(|| {
            let (commands, ends) = (both.0.clone(), both.1.clone());
            Entry::Stepped { now, change, commands, ends }
        });
        for end in ends {
            self.memory.on_drain_end(&end, now, config);
            tell_end(driver, &end, world);
        }
        let (calls, writes): (Vec<_>, Vec<_>) =
            commands.into_iter().partition(|command| matches!(command, Command::Delete { .. }));
        self.write_all(driver, writes, world).await?;
        self.delete(driver, (calls, held), world).await
    }

    /// What was begun is answered, whatever keeps the rest from being begun.
    async fn write_all<P: Provider, C: Cluster>(
        &mut self,
        driver: &Driver<P, C>,
        commands: Vec<Command>,
        world: &World,
    ) -> Result<(), TermError> {
        let term = &*self;
        let write = |command| async move {
            // Each on its own: the first of many may take longer than the lead lasts.
            term.may_begin(driver)?;
            Ok(write(driver, command, world).await)
        };
        let writes: Vec<_> = commands.into_iter().map(write).collect();
        let written: Vec<Result<_, TermError>> =
            stream::iter(writes).buffer_unordered(WRITES_MAX).collect().await;
        let mut refused = Ok(());
        for reply in written {
            match reply {
                Ok(reply) => reply
                    .into_iter()
                    .for_each(|(node, reply)| self.on_reply(driver, (&node, reply), world)),
                Err(error) => refused = Err(error),
            }
        }
        refused
    }

    /// One after the other. A provider that does not answer for a group is waited for once: the rest of
    /// the group is for the next step, and the other groups have their turn.
    async fn delete<P: Provider, C: Cluster>(
        &mut self,
        driver: &Driver<P, C>,
        (commands, mut held): (Vec<Command>, BTreeSet<GroupId>),
        world: &World,
    ) -> Result<(), TermError> {
        for command in commands {
            let Command::Delete { node, call } = command else { continue };
            let reply = match held.contains(call.group()) {
                true => Reply::Postponed,
                false => Reply::Deleted(self.call(driver, &call, world).await?),
            };
            if matches!(reply, Reply::Deleted(Effect::Failed(_) | Effect::Unknown)) {
                held.insert(call.group().clone());
            }
            self.on_reply(driver, (&node, reply), world);
        }
        Ok(())
    }

    fn on_reply<P: Provider, C: Cluster>(
        &mut self,
        driver: &Driver<P, C>,
        (node, reply): (&NodeName, Reply),
        world: &World,
    ) {
        let (now, config) = ((driver.clock)(), &driver.options.plans);
        let copy = (node, &reply);
        self.log.enter(|| Entry::Replied { now, node: copy.0.clone(), reply: copy.1.clone() });
        if let Some(end) = self.memory.on_drain_reply((node, reply), now, config) {
            tell_end(driver, &end, world);
        }
    }
}

/// One write for a removal, and what came of it.
async fn write<P: Provider, C: Cluster>(
    driver: &Driver<P, C>,
    command: Command,
    world: &World,
) -> Option<(NodeName, Reply)> {
    match command {
        Command::Taint { node, value, cordons } => {
            let mark = Mark::ToBeDeleted { since: value, cordons };
            let effect = mark_node(driver, &node, mark).await;
            Some((node, Reply::Tainted(effect)))
        }
        Command::Lift(lift) => {
            let effect = mark_node(driver, &lift.node, Mark::Stays).await;
            Some((lift.node, Reply::Lifted(effect)))
        }
        Command::Evict { node, pod, grace_secs } => {
            let outcome = evict(driver, (&node, &pod), grace_secs, world).await;
            Some((node, Reply::Evicted { pod, outcome }))
        }
        Command::Delete { .. } => None,
    }
}

async fn evict<P: Provider, C: Cluster>(
    driver: &Driver<P, C>,
    (node, pod): (&NodeName, &PodKey),
    grace_secs: i64,
    world: &World,
) -> Evicted {
    let uid = tell::uid_of(pod, world);
    match driver.cluster.evict(pod, uid.as_deref(), grace_secs).await {
        Ok(Evicted::Accepted) => {
            driver.metrics.on_evicted();
            driver.cluster.tell(Event {
                about: About::Pod { key: pod.clone(), uid },
                reason: "ScaleDown",
                is_warning: false,
                note: format!("deleting pod for node scale down of {node}"),
            });
            Evicted::Accepted
        }
        Ok(other) => other,
        Err(error) => {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(%pod, %node, error, "a pod is not evicted, and asked again");
            Evicted::Refused
        }
    }
}

fn tell_end<P: Provider, C: Cluster>(driver: &Driver<P, C>, end: &End, world: &World) {
    match end {
        End::HandedOver { order, is_confirmed: true } => {
            tracing::info!(node = %order.node, "handed to the provider");
            driver.metrics.on_removed(order);
        }
        // Whether it goes, the next listings tell.
        End::HandedOver { order, is_confirmed: false } => {
            tracing::warn!(node = %order.node, "the provider did not say whether it removes it");
        }
        End::Vanished(order) => tracing::info!(node = %order.node, "gone before it was removed"),
        End::RolledBack { order, why } => {
            tracing::warn!(node = %order.node, why, "its removal did not work out: it stays");
            driver.cluster.tell(Event {
                about: tell::about_node(&order.node, world),
                reason: "ScaleDownFailed",
                is_warning: true,
                note: format!("failed to remove the node: {why}"),
            });
        }
    }
}
