//! The read path: finds changes through the indexes in memory and fetches them from the files, with
//! no lock held meanwhile.

use etcd_api::mvccpb::KeyValue;
use mvcc::{Change, Position, Record, Revision};

use super::{
    frame::{CHANGE_HEADER_BYTES, Span},
    log::Log,
    segment::{self, Segment},
    sidecar,
};
use crate::{Error, Head};

/// Neighbouring changes are fetched together up to this size.
const READ_BYTES_MAX: u32 = 1 << 20;
/// Changes further apart than this are fetched apart, so that forgotten ones are not read.
const READ_GAP_MAX: u32 = 4096;

pub(super) fn read(log: &Log, at: Position) -> Result<Option<KeyValue>, Error> {
    let Some(segment) = log.segment_of(at.revision) else { return Ok(None) };
    let Some(span) = segment.filled.read().index.get(at) else { return Ok(None) };
    segment.read(span).map(Some)
}

/// The key-values of one answer share buffers of up to [`READ_BYTES_MAX`].
pub(super) fn records(log: &Log, from: Revision, bytes_max: usize) -> Result<Vec<Record>, Error> {
    let mut records: Vec<Record> = Vec::new();
    let mut budget = bytes_max.max(1);
    for segment in log.segments() {
        if segment.filled.read().last < from {
            continue;
        }
        if gather(&segment, from, &mut budget, &mut records)? {
            break;
        }
    }
    Ok(records)
}

/// Kept records of one segment from `from` on, up to about `bytes_max`.
pub(super) fn some_records(
    segment: &Segment,
    from: Revision,
    bytes_max: usize,
) -> Result<Vec<Record>, Error> {
    let mut records = Vec::new();
    gather(segment, from, &mut bytes_max.max(1), &mut records)?;
    Ok(records)
}

/// Head of every kept change of the segment, from its sidecar if that can serve.
pub(super) fn heads(log: &Log, segment: &Segment, each: &mut dyn FnMut(Head)) -> Result<(), Error> {
    if segment.has_sidecar()
        && let Some(heads) = sidecar::heads(&*log.folder.disk, segment)?
    {
        heads.into_iter().for_each(each);
        return Ok(());
    }
    let spans: Vec<Span> = segment.filled.read().index.kept_from(Revision(0)).collect();
    visit(segment, &spans, &mut |span, kv| {
        each(Head { position: span.position, kv: kv.without_value(), encoded_len: span.len });
    })
}

/// Adds the segment's records from `from` on; returns whether the budget is used up.
fn gather(
    segment: &Segment,
    from: Revision,
    budget: &mut usize,
    records: &mut Vec<Record>,
) -> Result<bool, Error> {
    let (spans, is_used_up) = wanted(segment, from, budget);
    visit(segment, &spans, &mut |span, kv| push(records, span.position, kv))?;
    Ok(is_used_up)
}

/// The spans of whole records from `from` on, as far as the budget goes, and whether it is used up.
fn wanted(segment: &Segment, from: Revision, budget: &mut usize) -> (Vec<Span>, bool) {
    let filled = segment.filled.read();
    let mut spans: Vec<Span> = Vec::new();
    for span in filled.index.kept_from(from) {
        let begins_record =
            spans.last().is_none_or(|before| before.position.revision != span.position.revision);
        if *budget == 0 && begins_record {
            return (spans, true);
        }
        *budget = budget.saturating_sub(span.len as usize);
        spans.push(span);
    }
    (spans, *budget == 0)
}

fn push(records: &mut Vec<Record>, position: Position, kv: KeyValue) {
    let change = Change { sub: position.sub, kv };
    match records.last_mut() {
        Some(record) if record.revision == position.revision => record.changes.push(change),
        _ => records.push(Record { revision: position.revision, changes: vec![change] }),
    }
}

/// Fetches and checks the changes in order, neighbours with one read.
pub(super) fn visit(
    segment: &Segment,
    spans: &[Span],
    each: &mut dyn FnMut(Span, KeyValue),
) -> Result<(), Error> {
    let mut rest = spans;
    while let Some(first) = rest.first() {
        let count = neighbours(rest);
        let (together, after) = rest.split_at(count);
        let end = end_of(&together[count - 1]);
        let len = (end - first.start) as usize;
        let bytes = segment::read_range(&segment.file, &segment.path, first.start.into(), len)?;
        for span in together {
            let begin = (span.start - first.start) as usize;
            let own = bytes.slice(begin..begin + CHANGE_HEADER_BYTES + span.len as usize);
            let kv = segment::key_value(span.position, own);
            each(*span, kv.ok_or_else(|| segment::damaged_change(&segment.path, *span))?);
        }
        rest = after;
    }
    Ok(())
}

/// How many spans at the front are worth one read: at least 1.
fn neighbours(spans: &[Span]) -> usize {
    let first = spans[0].start;
    let is_near = |pair: &[Span]| {
        pair[1].start - end_of(&pair[0]) <= READ_GAP_MAX
            && end_of(&pair[1]) - first <= READ_BYTES_MAX
    };
    1 + spans.windows(2).take_while(|pair| is_near(pair)).count()
}

fn end_of(span: &Span) -> u32 {
    span.start + CHANGE_HEADER_BYTES as u32 + span.len
}
