//! Which nodes may go, which go now, and to every other one, why not.
//!
//! 1. `eligible`: who could go at all, by the reasons that need no simulation.
//! 2. `ScaleDown::advance`: one node at a time, whether its pods find another place and budgets let
//!    them go. Who passes is unneeded, and the registry counts since when.
//! 3. `choose`: whose time has come, within minima, parallelism and cooldowns.

mod choose;
mod eligible;
mod marks;
mod reason;
mod relocate;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fit::{Budgets, ClassId, Cluster, NodeId};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use registry::{NodeName, Registry};

use super::config::Config;
use super::kept::KeptPod;
use super::memory::Memory;
use super::pending::Waiting;
use super::snapshot::Snapshot;
use super::world::{PodKey, World, bound_to, is_terminating};

pub(super) use choose::Chooser;
pub(super) use marks::marks;
pub use reason::{Against, Cooldown, Order, Reason};

use eligible::Kind;
use relocate::Relocator;

/// Everything removals are planned from.
#[derive(Clone, Copy)]
pub(super) struct Scene<'a, 'b> {
    pub(super) now: Timestamp,
    pub(super) config: &'a Config,
    pub(super) world: &'a World,
    pub(super) registry: &'b Registry,
    pub(super) memory: &'b Memory,
}

/// Unneeded nodes in the making.
#[derive(Debug)]
pub(super) struct ScaleDown<'a> {
    world: &'a World,
    relocator: Relocator,
    budgets: Budgets,
    /// The next last.
    queue: Vec<Candidate<'a>>,
    /// Pods that others moved here in thought.
    guests: BTreeMap<NodeId, Vec<Guest<'a>>>,
    found: Found<'a>,
}

/// What was found out.
#[derive(Debug, Default)]
pub(super) struct Found<'a> {
    /// Ready, and their pods could go elsewhere.
    pub(super) unneeded: BTreeMap<NodeName, Candidate<'a>>,
    /// Unready, and their pods may go.
    pub(super) unready: BTreeMap<NodeName, Candidate<'a>>,
    pub(super) kept: BTreeMap<NodeName, Against>,
    /// Those of the kept that are not looked at again for a while.
    pub(super) unremovable: BTreeSet<NodeName>,
}

/// A node that may go.
#[derive(Clone, Debug)]
pub(super) struct Candidate<'a> {
    pub(super) name: NodeName,
    pub(super) host: Option<NodeId>,
    pub(super) kind: Kind,
    /// Pods that would have to run elsewhere.
    pub(super) movers: Vec<Mover<'a>>,
}

/// A pod that would have to run elsewhere.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mover<'a> {
    pub(super) pod: &'a Arc<KeptPod>,
    /// As it takes room now.
    pub(super) class: Option<ClassId>,
}

/// A pod that runs elsewhere in thought.
#[derive(Clone, Copy, Debug)]
struct Guest<'a> {
    pod: &'a Arc<KeptPod>,
    class: ClassId,
}

// === impl ScaleDown ===

impl<'a> ScaleDown<'a> {
    /// `filled` is the snapshot's cluster with the pods that will find a place by themselves.
    pub(super) fn begin(
        scene: Scene<'a, '_>,
        snapshot: &Snapshot<'a>,
        filled: Cluster,
        seated: &[(Waiting<'a>, NodeId)],
    ) -> Self {
        let budgets = budgets(scene);
        let mut found = Found::default();
        let sorted =
            eligible::sort(scene, (snapshot, &filled), (seated, &budgets), &mut found.kept);
        found.unremovable = sorted.unremovable;
        let mut queue = in_order(sorted.candidates, scene, &budgets);
        queue.reverse();
        let destinations = snapshot.ready.values().copied().collect();
        Self {
            world: scene.world,
            relocator: Relocator::new(filled, destinations),
            budgets,
            queue,
            guests: BTreeMap::new(),
            found,
        }
    }

    /// Looks at no more than so many nodes. True if there are no more.
    pub(super) fn advance(&mut self, steps: usize) -> bool {
        for _ in 0..steps {
            let Some(candidate) = self.queue.pop() else { return true };
            self.look_at(candidate);
        }
        self.queue.is_empty()
    }

    /// What was found out; nodes that no step was left for are kept.
    pub(super) fn finish(mut self) -> Found<'a> {
        for candidate in self.queue {
            let why = Against::new(Reason::UnexpectedError, "not looked at in time");
            self.found.kept.insert(candidate.name, why);
        }
        self.found
    }

    fn look_at(&mut self, candidate: Candidate<'a>) {
        let moved = match candidate.kind {
            Kind::Ready => self.try_to_move(&candidate),
            Kind::Unready => reserve(&mut self.budgets, &candidate.movers),
        };
        match (moved, candidate.kind) {
            (Ok(()), Kind::Ready) => {
                self.found.unneeded.insert(candidate.name.clone(), candidate);
            }
            (Ok(()), Kind::Unready) => {
                self.found.unready.insert(candidate.name.clone(), candidate);
            }
            (Err(against), _) => {
                self.found.unremovable.insert(candidate.name.clone());
                self.found.kept.insert(candidate.name, against);
            }
        }
    }

    fn try_to_move(&mut self, candidate: &Candidate<'a>) -> Result<(), Against> {
        let Some(host) = candidate.host else { return Ok(()) };
        reserve(&mut self.budgets, &candidate.movers)?;
        let guests = self.guests.get(&host).cloned().unwrap_or_default();
        let moved =
            self.relocator.classes(self.world, &candidate.movers).and_then(|mut classes| {
                classes.extend(guests.iter().map(|guest| (Some(guest.class), guest.class)));
                self.relocator.relocate(host, &classes).map(|places| (classes, places))
            });
        match moved {
            Ok((classes, places)) => {
                self.guests.remove(&host);
                let movers = candidate.movers.iter().map(|mover| mover.pod);
                let pods = movers.chain(guests.iter().map(|guest| guest.pod));
                for ((pod, (_, class)), place) in pods.zip(classes).zip(places) {
                    self.guests.entry(place).or_default().push(Guest { pod, class });
                }
                Ok(())
            }
            Err(no_place) => {
                release(&mut self.budgets, &candidate.movers);
                let pods: Vec<_> = candidate.movers.iter().map(|mover| mover.pod).collect();
                let all: Vec<_> =
                    pods.into_iter().chain(guests.iter().map(|guest| guest.pod)).collect();
                Err(no_place.against(|at| PodKey::of(all[at]).to_string()))
            }
        }
    }
}

/// Budgets less what removals under way will take.
fn budgets(scene: Scene<'_, '_>) -> Budgets {
    let mut budgets = Budgets::new(&scene.world.budgets);
    let is_leaving = |pod: &KeptPod| {
        bound_to(pod).is_some_and(|node| scene.memory.drains.has_pods_to_go(node))
            && !is_terminating(pod)
    };
    for pod in scene.world.pods.iter().filter(|pod| is_leaving(pod)) {
        // A budget that is overdrawn already has nothing left to reserve.
        budgets.reserve(&[&pod.kind]).unwrap_or_default();
    }
    budgets
}

/// Those that were unneeded before first, the longest first, so that who is about to go is not kept by
/// others; those that compete for a budget last.
fn in_order<'a>(
    mut candidates: Vec<Candidate<'a>>,
    scene: Scene<'_, '_>,
    budgets: &Budgets,
) -> Vec<Candidate<'a>> {
    let since = |name: &NodeName| scene.registry.unneeded_since(name).unwrap_or(Timestamp::MAX);
    candidates.sort_by_key(|each| (!each.movers.is_empty(), since(&each.name), each.name.clone()));
    let pods: Vec<Vec<&Pod>> = candidates.iter().map(|each| disrupted(&each.movers)).collect();
    let order = budgets.order(&pods);
    order.into_iter().map(|at| candidates[at].clone()).collect()
}

/// Pods whose move costs budget: those that run and are not on their way out.
fn disrupted<'a>(movers: &[Mover<'a>]) -> Vec<&'a Pod> {
    let is_live = |pod: &&'a Arc<KeptPod>| bound_to(pod).is_some() && !is_terminating(pod);
    movers.iter().map(|mover| mover.pod).filter(is_live).map(|pod| &*pod.kind).collect()
}

fn reserve(budgets: &mut Budgets, movers: &[Mover<'_>]) -> Result<(), Against> {
    budgets.reserve(&disrupted(movers)).map_err(|spent| {
        let detail = format!("NotEnoughPdb: budget {}/{}", spent.namespace, spent.name);
        Against::new(Reason::BlockedByPod, &detail)
    })
}

fn release(budgets: &mut Budgets, movers: &[Mover<'_>]) {
    budgets.release(&disrupted(movers));
}

/// A pod's class as it would have to be placed, or why that cannot be told.
fn placeable(cluster: &mut Cluster, world: &World, pod: &KeptPod) -> Result<ClassId, String> {
    cluster.compile(&pod.kind, &world.volumes).map_err(|error| error.to_string())
}
