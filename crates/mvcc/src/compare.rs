//! The conditions of a transaction.

use std::{cmp::Ordering, ops::ControlFlow};

use etcd_api::etcdserverpb::{
    Compare,
    compare::{CompareResult, CompareTarget, TargetUnion},
};

use crate::{Error, Values, View, entry::Version, key::KeyRange, range::read};

/// Whether all conditions hold in the newest state of `view`.
pub(crate) fn all_hold(
    view: &View,
    compares: &[Compare],
    values: &dyn Values,
) -> Result<bool, Error> {
    for compare in compares {
        if !holds(view, compare, values)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A condition on a range holds if it holds for every key in it. A missing key, or an empty range,
/// compares as zero, except that nothing can be said of a missing value.
fn holds(view: &View, compare: &Compare, values: &dyn Values) -> Result<bool, Error> {
    let range = KeyRange::new(&compare.key, &compare.range_end);
    let mut is_missing = true;
    let mut outcome = Ok(true);
    view.walk(range, view.revision, &mut |entry| {
        let Some(version) = entry.live() else { return ControlFlow::Continue(()) };
        is_missing = false;
        outcome = holds_for(compare, version, values);
        match outcome {
            Ok(true) => ControlFlow::Continue(()),
            Ok(false) | Err(_) => ControlFlow::Break(()),
        }
    });
    if is_missing {
        return Ok(holds_for_missing(compare));
    }
    outcome
}

fn holds_for(compare: &Compare, version: &Version, values: &dyn Values) -> Result<bool, Error> {
    let ordering = match compare.target {
        target if target == CompareTarget::Value as i32 => {
            let kv = read(values, version.position)?;
            kv.value().cmp(wanted_value(compare))
        }
        target => number(target, version).cmp(&wanted_number(compare)),
    };
    Ok(accepts(compare.result, ordering))
}

fn holds_for_missing(compare: &Compare) -> bool {
    if compare.target == CompareTarget::Value as i32 {
        return false;
    }
    accepts(compare.result, 0.cmp(&wanted_number(compare)))
}

/// The compared number; an unknown target compares as equal.
fn number(target: i32, version: &Version) -> i64 {
    match CompareTarget::try_from(target) {
        Ok(CompareTarget::Version) => version.version,
        Ok(CompareTarget::Create) => version.created.0,
        Ok(CompareTarget::Mod) => version.position.revision.0,
        Ok(CompareTarget::Lease) => version.lease.0,
        Ok(CompareTarget::Value) | Err(_) => 0,
    }
}

/// What the request compares with: the field that belongs to its target, else zero.
fn wanted_number(compare: &Compare) -> i64 {
    let target = CompareTarget::try_from(compare.target);
    match (target, &compare.target_union) {
        (Ok(CompareTarget::Version), Some(TargetUnion::Version(n)))
        | (Ok(CompareTarget::Create), Some(TargetUnion::CreateRevision(n)))
        | (Ok(CompareTarget::Mod), Some(TargetUnion::ModRevision(n)))
        | (Ok(CompareTarget::Lease), Some(TargetUnion::Lease(n))) => *n,
        _ => 0,
    }
}

fn wanted_value(compare: &Compare) -> &[u8] {
    match &compare.target_union {
        Some(TargetUnion::Value(value)) => value,
        _ => &[],
    }
}

/// An unknown relation holds, as in etcd.
fn accepts(result: i32, ordering: Ordering) -> bool {
    match CompareResult::try_from(result) {
        Ok(CompareResult::Equal) => ordering.is_eq(),
        Ok(CompareResult::NotEqual) => ordering.is_ne(),
        Ok(CompareResult::Greater) => ordering.is_gt(),
        Ok(CompareResult::Less) => ordering.is_lt(),
        Err(_) => true,
    }
}
