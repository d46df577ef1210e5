//! Which nodes could go, by the reasons that need no simulation, in upstream's order.

use std::collections::{BTreeMap, BTreeSet};

use fit::drain::{self, Surroundings, Verdict};
use fit::{Budgets, Cluster, NodeId};
use registry::{Class, NodeName, NodeView};

use super::super::account::clock;
use super::super::config::Config;
use super::super::kept::KeptPod;
use super::super::pending::Waiting;
use super::super::snapshot::{Occupant, Snapshot};
use super::super::world::{PodKey, is_daemon, is_expendable};
use super::reason::{Against, Reason};
use super::{Candidate, Mover, Scene};

/// By which rule a node goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Kind {
    /// Once it was unneeded for long enough.
    Ready,
    /// Once it was unready for long enough, whatever it would be needed for.
    Unready,
}

/// What is worth a simulation.
#[derive(Default)]
pub(super) struct Sorted<'a> {
    pub(super) candidates: Vec<Candidate<'a>>,
    pub(super) unremovable: BTreeSet<NodeName>,
}

pub(super) fn sort<'a>(
    scene: Scene<'a, '_>,
    (snapshot, filled): (&Snapshot<'a>, &Cluster),
    (seated, budgets): (&[(Waiting<'a>, NodeId)], &Budgets),
    kept: &mut BTreeMap<NodeName, Against>,
) -> Sorted<'a> {
    let mut coming: BTreeMap<NodeId, Vec<Occupant<'a>>> = BTreeMap::new();
    for (pod, node) in seated {
        let occupant = Occupant { pod: pod.pod, class: Some(pod.class) };
        coming.entry(*node).or_default().push(occupant);
    }
    let mut sorted = Sorted::default();
    for name in scene.world.nodes.keys() {
        let host = snapshot.hosts.get(name).copied();
        let seats = snapshot.occupants.get(name.as_str()).into_iter().flatten();
        let guests = host.and_then(|host| coming.get(&host)).into_iter().flatten();
        let occupants: Vec<_> = seats.chain(guests).copied().collect();
        let Some(view) = scene.registry.node(name) else { continue };
        let found = kind(scene, name, view).and_then(|kind| {
            if kind == Kind::Ready {
                is_unneeded(scene, (snapshot, filled), (name, view), &occupants)?;
            }
            Ok(kind)
        });
        let movers = found.and_then(|kind| {
            let movers = movers(scene, budgets, &occupants).inspect_err(|_| {
                sorted.unremovable.insert(name.clone());
            });
            movers.map(|movers| Candidate { name: name.clone(), host, kind, movers })
        });
        match movers {
            Ok(candidate) => sorted.candidates.push(candidate),
            Err(against) => _ = kept.insert(name.clone(), against),
        }
    }
    sorted
}

/// Whether a node is one that may go at all.
fn kind(scene: Scene<'_, '_>, name: &NodeName, view: &NodeView) -> Result<Kind, Against> {
    let no = |reason, detail: &str| Err(Against::new(reason, detail));
    let Some(group) = &view.group else { return no(Reason::NotAutoscaled, "") };
    if scene.world.is_zero_or_max(group) {
        return no(Reason::NotAutoscaled, "zero-or-max groups are left alone");
    }
    if matches!(view.class, Class::Leaving | Class::Gone) || scene.memory.drains.has(name) {
        return no(Reason::CurrentlyBeingDeleted, "");
    }
    if view.is_removal_forbidden {
        return no(Reason::ScaleDownDisabledAnnotation, "");
    }
    let kind = match view.class {
        Class::Starting => return no(Reason::NotStarted, ""),
        Class::Suspended => return no(Reason::Suspended, ""),
        class if class.is_unready() => Kind::Unready,
        _ => Kind::Ready,
    };
    if kind == Kind::Unready && !scene.config.scale_down.removes_unready {
        return no(Reason::ScaleDownUnreadyDisabled, "");
    }
    if let Some(known) = scene.memory.unremovable.get(name).filter(|it| scene.now < it.until) {
        let detail = format!("{}; looked at again at {}", known.why, clock(known.until));
        return no(Reason::RecentlyUnremovable, &detail);
    }
    Ok(kind)
}

/// Whether too little of a node is in use for it to stay.
fn is_unneeded(
    scene: Scene<'_, '_>,
    (snapshot, filled): (&Snapshot<'_>, &Cluster),
    (name, view): (&NodeName, &NodeView),
    occupants: &[Occupant<'_>],
) -> Result<(), Against> {
    if let Some(error) = snapshot.unclear.get(name) {
        return Err(Against::new(Reason::UnexpectedError, error));
    }
    let Some(host) = snapshot.hosts.get(name) else {
        return Err(Against::new(Reason::UnexpectedError, "it was not looked at"));
    };
    let Config { scale_down, .. } = scene.config;
    let settings = view.group.as_ref().map(|group| scene.world.settings(group)).unwrap_or_default();
    let threshold = settings.utilization_threshold.unwrap_or(scale_down.utilization_threshold);
    let ignores_daemons = settings.ignores_daemon_sets.unwrap_or(scale_down.ignores_daemon_sets);
    let daemons = occupants.iter().filter(|each| ignores_daemons && is_daemon(each.pod));
    let daemons: Vec<_> = daemons.filter_map(|each| each.class).collect();
    let utilization = filled.utilization(*host, &daemons);
    if utilization >= threshold {
        let detail = format!("{:.1}% of {:.1}%", utilization * 100.0, threshold * 100.0);
        return Err(Against::new(Reason::NotUnderutilized, &detail));
    }
    Ok(())
}

/// The pods that would have to go elsewhere, unless one of them forbids it.
pub(super) fn movers<'a>(
    scene: Scene<'a, '_>,
    budgets: &Budgets,
    occupants: &[Occupant<'a>],
) -> Result<Vec<Mover<'a>>, Against> {
    let cutoff = scene.config.expendable_priority_cutoff;
    let surroundings = Surroundings {
        now: scene.now,
        options: &scene.config.scale_down.drain_rules,
        controllers: &scene.world.controllers,
        budgets,
    };
    let mut movers = Vec::new();
    for occupant in occupants.iter().filter(|each| !is_expendable(each.pod, cutoff)) {
        if moves(occupant.pod, surroundings)? {
            movers.push(Mover { pod: occupant.pod, class: occupant.class });
        }
    }
    Ok(movers)
}

/// Whether a pod has to run elsewhere; who has finished does not.
fn moves(pod: &KeptPod, surroundings: Surroundings<'_>) -> Result<bool, Against> {
    match drain::judge(&pod.kind, surroundings) {
        Verdict::Ignored => Ok(false),
        Verdict::Moves => Ok(!drain::is_finished(&pod.kind)),
        Verdict::Blocks(reason) => {
            let detail = format!("{reason}: {}", PodKey::of(pod));
            Err(Against::new(Reason::BlockedByPod, &detail))
        }
    }
}
