//! Brings a log segment into being: header and start frame are durable before it gets its name,
//! so a segment that can be seen always says where it stands and what the meta table was.

use mvcc::Revision;

use super::{
    folder::Folder,
    frame::{self, Encoder, Kind},
    index::Index,
    ledger::Ledger,
    log::Log,
    segment::{self, Extent, Filled, Header, Segment},
    sizes::Sizes,
    spares::{self, Spare},
};
use crate::{BatchId, Error, error::At};

/// The first segment of a new journal.
pub(super) fn first_segment(folder: &Folder, sizes: Sizes) -> Result<Segment, Error> {
    let header = Header {
        identity: folder.identity,
        id: 1,
        first_sequence: 1,
        base: Revision::INITIAL,
        extent: Extent::Log,
    };
    let start = start_frame(&Ledger::blank(), &header);
    let room = unprepared(folder, header.id, sizes.smallest())?;
    spares::zero(&*room.file, 0, room.bytes).at("cannot write", &room.path)?;
    publish(folder, room, header, &start)
}

/// The segment after `active`, with room for a frame of `frame_bytes` whatever its size.
pub(super) fn log_segment(log: &Log, active: &Segment, frame_bytes: u64) -> Result<Segment, Error> {
    let (_, first_sequence) = active.filled.read().tail();
    let ledger = log.view.read().ledger.clone();
    let header = Header {
        identity: log.folder.identity,
        id: log.next_id(),
        first_sequence,
        base: ledger.last,
        extent: Extent::Log,
    };
    let start = start_frame(&ledger, &header);
    // Twice the start frame: a meta table near the segment's size must not make each append rotate.
    let needed = segment::HEADER_BYTES as u64 + 2 * start.bytes().len() as u64 + frame_bytes;
    let room = match log.spares.take(needed) {
        Some(spare) => spare,
        None => unprepared(&log.folder, header.id, needed.max(log.sizes.smallest()))?,
    };
    publish(&log.folder, room, header, &start)
}

/// A file that grows as it is written, up to `bytes`.
fn unprepared(folder: &Folder, id: u64, bytes: u64) -> Result<Spare, Error> {
    let path = folder.unfinished_path(id);
    let file = folder.disk.create(&path).at("cannot create", &path)?;
    Ok(Spare { path, file, bytes })
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
    Spare { path: unnamed, file, bytes }: Spare,
    header: Header,
    start: &Encoder,
) -> Result<Segment, Error> {
    let path = folder.log().join(header.file_name());
    file.write_at(&header.encode(), 0).at("cannot write", &unnamed)?;
    file.write_at(start.bytes(), segment::HEADER_BYTES as u64).at("cannot write", &unnamed)?;
    file.sync().at("cannot sync", &unnamed)?;
    folder.rename(&unnamed, &path)?;
    folder.sync_log()?;
    let filled = Filled {
        index: Index::default(),
        end: (segment::HEADER_BYTES + start.bytes().len()) as u64,
        next_sequence: header.first_sequence + 1,
        last: header.base,
    };
    Ok(Segment::new(path, file, header, filled).with_capacity(bytes))
}
