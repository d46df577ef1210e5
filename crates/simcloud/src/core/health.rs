//! How Nodes fare: who registers, who becomes Ready, and whom the script strikes afterwards.

use jiff::Timestamp;
use registry::NodeName;

use super::after;
use super::cloud::Cloud;
use super::create;
use super::instance::Instance;
use super::ledger::{FaultIndex, Ledger, Place};
use super::node::{Health, Machine, Node};
use crate::scenario::Kind;

pub(super) fn tend(cloud: &mut Cloud) {
    register(cloud);
    strike(cloud);
    let changes: Vec<(NodeName, Health)> =
        cloud.nodes.values().map(|node| (node.name.clone(), health(cloud, node))).collect();
    let now = cloud.now;
    for (name, health) in changes {
        let Some(node) = cloud.nodes.get_mut(&name) else { continue };
        if node.health != health {
            node.health = health;
            node.since = now;
        }
    }
}

/// Machines whose time has come and who can be heard.
fn register(cloud: &mut Cloud) {
    let now = cloud.now;
    for group in cloud.groups.values_mut() {
        for instance in group.instances.values_mut() {
            let is_due = instance.registers_at.is_some_and(|at| at <= now);
            let is_heard = !is_cut_off(&cloud.ledger, instance.place(), now);
            if is_due && is_heard && instance.is_running(now) && !instance.has_registered {
                instance.has_registered = true;
                let ready_at = instance.ready_after.map(|span| after(now, span));
                let node = create::node(instance, now, ready_at);
                cloud.nodes.insert(node.name.clone(), node);
            }
        }
    }
}

/// Lets every fault that is on have its one chance at each machine that is Ready.
fn strike(cloud: &mut Cloud) {
    let now = cloud.now;
    let wanted = |kind: &Kind| {
        matches!(kind, Kind::NotReady | Kind::Silent | Kind::Flapping { .. }).then_some(())
    };
    for (fault, ()) in cloud.ledger.active(now, wanted) {
        let all = cloud.groups.values_mut().flat_map(|group| group.instances.values_mut());
        for instance in all {
            let node = cloud.nodes.get(&instance.name);
            let is_ready = node.is_some_and(|node| node.health == Health::Ready);
            let is_well = is_ready && affliction(instance, &cloud.ledger, now).is_none();
            let is_considered = is_well
                && cloud.ledger.covers(fault, instance.place())
                && instance.considered.insert(fault);
            if is_considered && cloud.ledger.hit(fault) {
                instance.struck.insert(fault);
            }
        }
    }
}

fn health(cloud: &Cloud, node: &Node) -> Health {
    let (now, ledger) = (cloud.now, &cloud.ledger);
    let place = Place { group: Some(&node.group), zone: Some(&node.zone) };
    if node.machine != Machine::Present || is_cut_off(ledger, place, now) {
        return Health::Silent;
    }
    let group = cloud.groups.get(&node.group);
    let instance = group.and_then(|group| group.instances.get(&node.number));
    let worst = instance.and_then(|instance| affliction(instance, ledger, now));
    let is_ready = node.ready_at.is_some_and(|at| at <= now);
    worst.unwrap_or(if is_ready { Health::Ready } else { Health::NotReady })
}

/// What the faults that struck the machine make of it now.
fn affliction(instance: &Instance, ledger: &Ledger, now: Timestamp) -> Option<Health> {
    let active = ledger.active(now, |kind| Some(kind.clone())).into_iter();
    let struck = active.filter(|(fault, _)| instance.struck.contains(fault));
    let each = struck.filter_map(|(fault, kind)| effect(fault, &kind, ledger, now));
    each.max_by_key(|health| *health == Health::Silent)
}

fn effect(fault: FaultIndex, kind: &Kind, ledger: &Ledger, now: Timestamp) -> Option<Health> {
    match kind {
        Kind::Silent => Some(Health::Silent),
        Kind::NotReady => Some(Health::NotReady),
        Kind::Flapping { every } => {
            let turns = ledger.running_for(fault, now).as_nanos() / every.as_nanos();
            turns.is_multiple_of(2).then_some(Health::NotReady)
        }
        _ => None,
    }
}

fn is_cut_off(ledger: &Ledger, place: Place<'_>, now: Timestamp) -> bool {
    ledger.find(now, place, |kind| matches!(kind, Kind::Partition).then_some(())).is_some()
}
