//! How a machine comes to be: what its life will be is settled when it is created.

use std::collections::BTreeSet;

use jiff::Timestamp;
use registry::{ErrorClass, ErrorInfo, NodeName};

use super::after;
use super::cloud::GroupState;
use super::instance::{Instance, SCHEME, id};
use super::ledger::{Ledger, Place};
use super::node::{Health, Machine, Node};
use crate::scenario::{Kind, Span, Words};

/// One more machine, with whatever befalls those created now.
pub(super) fn create(group: &mut GroupState, ledger: &mut Ledger, now: Timestamp) {
    let mut instance = sound(group, ledger, now);
    afflict(&mut instance, ledger, now);
    group.instances.insert(group.issued, instance);
    group.issued += 1;
}

/// One more machine that has been there for as long as it takes to be Ready.
pub(super) fn create_ready(group: &mut GroupState, ledger: &Ledger, now: Timestamp) -> Node {
    let mut instance = sound(group, ledger, now);
    instance.running_at = now;
    instance.has_registered = true;
    let node = node(&instance, now, Some(now));
    group.instances.insert(group.issued, instance);
    group.issued += 1;
    Node { health: Health::Ready, ..node }
}

/// The Node a machine registers.
pub(super) fn node(instance: &Instance, now: Timestamp, ready_at: Option<Timestamp>) -> Node {
    Node {
        name: instance.name.clone(),
        group: instance.group.clone(),
        zone: instance.zone.clone(),
        provider_id: instance.claimed_id.clone(),
        created: now,
        health: Health::NotReady,
        since: now,
        number: instance.number,
        ready_at,
        machine: Machine::Present,
    }
}

/// A machine that nothing is wrong with.
fn sound(group: &GroupState, ledger: &Ledger, now: Timestamp) -> Instance {
    let plan = &group.plan;
    let name = NodeName(format!("{}-{}", plan.id, group.issued));
    let pick = |span: Span, phase: &str| {
        span.pick(ledger.draw(&format!("{} {phase}", plan.id), group.issued))
    };
    let running_at = after(now, pick(plan.boot, "boot"));
    Instance {
        claimed_id: id(&plan.id, &name).0,
        group: plan.id.clone(),
        number: group.issued,
        zone: group.next_zone().to_owned(),
        running_at,
        registers_at: Some(after(running_at, pick(plan.register, "register"))),
        ready_after: Some(pick(plan.ready, "ready")),
        has_registered: false,
        error: None,
        gone_at: None,
        considered: BTreeSet::new(),
        struck: BTreeSet::new(),
        name,
    }
}

fn afflict(instance: &mut Instance, ledger: &mut Ledger, now: Timestamp) {
    let (group, zone) = (instance.group.clone(), instance.zone.clone());
    let place = Place { group: Some(&group), zone: Some(&zone) };
    instance.error = ledger.strike(now, place, error_info);
    let mut strikes =
        |wanted: Kind| ledger.strike(now, place, |kind| (*kind == wanted).then_some(())).is_some();
    if instance.error.is_some() || strikes(Kind::NeverRegisters) {
        instance.registers_at = None;
    }
    if strikes(Kind::NeverReady) {
        instance.ready_after = None;
    }
    if strikes(Kind::EmptyProviderId) {
        instance.claimed_id = String::new();
    }
    if strikes(Kind::WrongProviderId) {
        instance.claimed_id = format!("{SCHEME}elsewhere/{}", instance.name);
    }
}

fn error_info(kind: &Kind) -> Option<ErrorInfo> {
    let (class, words) = match kind {
        Kind::Quota(words) => (ErrorClass::OutOfResources, words),
        Kind::CreateError(words) => (ErrorClass::Other, words),
        _ => return None,
    };
    let Words { code, message } = words.clone();
    Some(ErrorInfo { class, code, message })
}
