//! Brings a log segment into being: header and start frame are durable before it gets its name,
//! so a segment that can be seen always says where it stands and what the meta table was.

use std::{path::Path, sync::Arc};

use mvcc::Revision;

use super::{
    disk::DiskFile,
    folder::Folder,
    frame::{self, Encoder, Kind},
    index::Index,
    ledger::Ledger,
    log::Log,
    segment::{self, Extent, Filled, Header, Segment},
};
use crate::{BatchId, Error, error::At};

pub(super) struct Created {
    pub(super) segment: Segment,
    /// Where it is full.
    pub(super) capacity: u64,
}

/// The first segment of a new journal.
pub(super) fn first_segment(folder: &Folder, segment_bytes: u64) -> Result<Created, Error> {
    let header = Header {
        identity: folder.identity,
        id: 1,
        first_sequence: 1,
        base: Revision::INITIAL,
        extent: Extent::Log,
    };
    let start = start_frame(&Ledger::blank(), &header);
    let path = folder.unfinished_path(header.id);
    let file = folder.disk.create(&path).at("cannot create", &path)?;
    let segment = publish(folder, &path, file, header, &start)?;
    Ok(Created { segment, capacity: segment_bytes })
}

/// The segment after `active`, with room for a frame of `frame_bytes` whatever its size.
pub(super) fn log_segment(log: &Log, active: &Segment, frame_bytes: u64) -> Result<Created, Error> {
    let (_, first_sequence) = active.filled.read().tail();
    let ledger = &log.view.read().ledger.clone();
    let header = Header {
        identity: log.folder.identity,
        id: log.next_id(),
        first_sequence,
        base: ledger.last,
        extent: Extent::Log,
    };
    let start = start_frame(ledger, &header);
    // Twice the start frame: a meta table near the segment's size must not make each append rotate.
    let needed = segment::HEADER_BYTES as u64 + 2 * start.bytes().len() as u64 + frame_bytes;
    let capacity = log.segment_bytes.max(needed);
    let path = log.folder.unfinished_path(header.id);
    let file = log.folder.disk.create(&path).at("cannot create", &path)?;
    let segment = publish(&log.folder, &path, file, header, &start)?;
    Ok(Created { segment, capacity })
}

fn start_frame(ledger: &Ledger, header: &Header) -> Encoder {
    let mut encoder = Encoder::default();
    encoder.begin();
    for (key, value) in &ledger.meta {
        encoder.meta(key, Some(value));
    }
    for mark in &ledger.marks {
        encoder.mark(*mark);
    }
    let id = BatchId { epoch: ledger.epoch, number: 0 };
    let (sequence, last) = (header.first_sequence, ledger.last);
    encoder.finish(&frame::Header { kind: Kind::Start, sequence, id, last }, header.seed());
    encoder
}

fn publish(
    folder: &Folder,
    unnamed: &Path,
    file: Arc<dyn DiskFile>,
    header: Header,
    start: &Encoder,
) -> Result<Segment, Error> {
    let path = folder.log().join(header.file_name());
    file.write_at(&header.encode(), 0).at("cannot write", unnamed)?;
    file.write_at(start.bytes(), segment::HEADER_BYTES as u64).at("cannot write", unnamed)?;
    file.sync().at("cannot sync", unnamed)?;
    folder.rename(unnamed, &path)?;
    folder.sync_log()?;
    let filled = Filled {
        index: Index::default(),
        end: (segment::HEADER_BYTES + start.bytes().len()) as u64,
        next_sequence: header.first_sequence + 1,
        last: header.base,
    };
    Ok(Segment { path, file, header, filled: filled.into() })
}
