//! Answering range requests on a view.

use std::{cmp::Ordering, ops::ControlFlow};

use etcd_api::{
    etcdserverpb::{
        RangeRequest, RangeResponse, ResponseHeader,
        range_request::{SortOrder, SortTarget},
    },
    mvccpb::{KeyValue, KeyValueParts},
};

use crate::{
    Error, Position, Revision, Values, View,
    entry::{Entry, Found},
    key::KeyRange,
};

/// What a request asks for beyond its range, with etcd's defaults resolved.
struct Plan {
    at: Revision,
    /// How many keys to look at: one more than the limit, or all if they are filtered or sorted first.
    fetch_max: usize,
    /// How many to return.
    limit: usize,
    sort: Option<(SortTarget, SortOrder)>,
    content: Content,
}

/// How much of each key-value is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Content {
    Full,
    /// Key, revisions and version, all known to the index. Like etcd 3.7 this leaves out the lease.
    KeysOnly,
    /// The value is dropped from the answer but decides the order.
    KeysOnlySortedByValue,
}

pub(crate) fn execute(
    view: &View,
    request: &RangeRequest,
    values: &dyn Values,
) -> Result<RangeResponse, Error> {
    let at = view.resolve(request.revision)?;
    let range = KeyRange::new(&request.key, &request.range_end);
    let mut response = RangeResponse {
        header: Some(ResponseHeader { revision: view.revision().0, ..Default::default() }),
        count: i64::try_from(view.tree.count(range, at)).expect("keys fit in memory"),
        ..Default::default()
    };
    if request.count_only {
        return Ok(response);
    }
    let plan = Plan::new(request, at);
    let mut kvs = fetch(view, range, &plan, values)?;
    kvs.retain(|kv| passes_filters(request, kv));
    if let Some((target, order)) = plan.sort {
        sort(&mut kvs, target, order);
    }
    response.more = kvs.len() > plan.limit;
    kvs.truncate(plan.limit);
    if plan.content == Content::KeysOnlySortedByValue {
        kvs = kvs.iter().map(KeyValue::without_value).collect();
    }
    response.kvs = kvs;
    Ok(response)
}

/// The most keys that answering looks at, known from the index alone.
pub(crate) fn keys_read(view: &View, request: &RangeRequest) -> usize {
    let Ok(at) = view.resolve(request.revision) else { return 0 };
    if request.count_only || request.range_end.is_empty() {
        return 1;
    }
    let range = KeyRange::new(&request.key, &request.range_end);
    view.tree.count(range, at).min(Plan::new(request, at).fetch_max)
}

// === impl Plan ===

impl Plan {
    fn new(request: &RangeRequest, at: Revision) -> Self {
        let limit = usize::try_from(request.limit).ok().filter(|limit| *limit > 0);
        let limit = limit.unwrap_or(usize::MAX);
        let looks_at_all = is_sorted_before_limit(request) || has_filters(request);
        let content = match (request.keys_only, request.sort_target()) {
            (false, _) => Content::Full,
            (true, SortTarget::Value) => Content::KeysOnlySortedByValue,
            (true, _) => Content::KeysOnly,
        };
        let fetch_max = if looks_at_all { usize::MAX } else { limit.saturating_add(1) };
        Self { at, fetch_max, limit, sort: sort_of(request), content }
    }
}

/// Whether the limit applies to the sorted keys. With a target but no order it does not: like etcd
/// this then takes one key more than the limit in key order, sorts those, and cuts off the last.
fn is_sorted_before_limit(request: &RangeRequest) -> bool {
    match (request.sort_target(), request.sort_order()) {
        (_, SortOrder::None) | (SortTarget::Key, SortOrder::Ascend) => false,
        (_, SortOrder::Ascend | SortOrder::Descend) => true,
    }
}

/// The sorting that differs from key order; a target without an order means ascending.
fn sort_of(request: &RangeRequest) -> Option<(SortTarget, SortOrder)> {
    match (request.sort_target(), request.sort_order()) {
        (SortTarget::Key, SortOrder::None | SortOrder::Ascend) => None,
        (target, SortOrder::None) => Some((target, SortOrder::Ascend)),
        (target, order) => Some((target, order)),
    }
}

fn has_filters(request: &RangeRequest) -> bool {
    request.min_mod_revision != 0
        || request.max_mod_revision != 0
        || request.min_create_revision != 0
        || request.max_create_revision != 0
}

fn passes_filters(request: &RangeRequest, kv: &KeyValue) -> bool {
    let passes = |min: i64, max: i64, revision: i64| {
        (min == 0 || revision >= min) && (max == 0 || revision <= max)
    };
    if !has_filters(request) {
        return true;
    }
    passes(request.min_mod_revision, request.max_mod_revision, kv.mod_revision())
        && passes(request.min_create_revision, request.max_create_revision, kv.create_revision())
}

/// The key-values of the first `plan.fetch_max` keys, in key order.
fn fetch(
    view: &View,
    range: KeyRange<'_>,
    plan: &Plan,
    values: &dyn Values,
) -> Result<Vec<KeyValue>, Error> {
    let mut kvs = Vec::new();
    let mut failure = None;
    view.walk(range, plan.at, &mut |entry| {
        let Some(found) = entry.at(plan.at) else { return ControlFlow::Continue(()) };
        match content_of(entry, found, plan.content, values) {
            Ok(kv) => kvs.push(kv),
            Err(error) => {
                failure = Some(error);
                return ControlFlow::Break(());
            }
        }
        if kvs.len() < plan.fetch_max { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    match failure {
        Some(error) => Err(error),
        None => Ok(kvs),
    }
}

fn content_of(
    entry: &Entry,
    found: Found<'_>,
    content: Content,
    values: &dyn Values,
) -> Result<KeyValue, Error> {
    match (content, found) {
        (Content::KeysOnly, Found::Newest(version)) => Ok(KeyValue::new(&KeyValueParts {
            key: &entry.key,
            create_revision: version.created.0,
            mod_revision: version.position.revision.0,
            version: version.version,
            value: &[],
            lease: 0,
        })),
        (Content::KeysOnly, Found::Older(position)) => {
            let kv = read(values, position)?;
            Ok(KeyValue::new(&KeyValueParts { value: &[], lease: 0, ..kv.parts() }))
        }
        (Content::Full | Content::KeysOnlySortedByValue, found) => read(values, found.position()),
    }
}

pub(crate) fn read(values: &dyn Values, position: Position) -> Result<KeyValue, Error> {
    values.read(position).map_err(|source| Error::Read { position, source })
}

fn sort(kvs: &mut [KeyValue], target: SortTarget, order: SortOrder) {
    let by = |a: &KeyValue, b: &KeyValue| -> Ordering {
        match target {
            SortTarget::Key => a.key().cmp(b.key()),
            SortTarget::Version => a.version().cmp(&b.version()),
            SortTarget::Create => a.create_revision().cmp(&b.create_revision()),
            SortTarget::Mod => a.mod_revision().cmp(&b.mod_revision()),
            SortTarget::Value => a.value().cmp(b.value()),
        }
    };
    match order {
        SortOrder::Descend => kvs.sort_by(|a, b| by(b, a)),
        SortOrder::None | SortOrder::Ascend => kvs.sort_by(by),
    }
}
