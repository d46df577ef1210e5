//! Finds where the last lines begin.

use std::{collections::VecDeque, path::Path};

use super::{Content, Error, Reader, Streams, TAIL_LINES_MAX};

/// The offset from which on `lines` lines of the wanted streams come. What follows the last newline
/// is a line too.
pub(super) fn offset(dir: &Path, lines: u32, streams: Streams) -> Result<u64, Error> {
    let lines = lines.min(TAIL_LINES_MAX) as usize;
    let mut reader = Reader::new(dir, 0, streams);
    // One more than asked for: the last may turn out to begin nothing.
    let mut starts = VecDeque::from([0]);
    let mut end = 0;
    while let Some(entry) = reader.next_entry()? {
        let Content::Data { bytes, .. } = &entry.content else { continue };
        let newlines = bytes.iter().zip(1..).filter(|(byte, _)| **byte == b'\n');
        for (_, after) in newlines {
            starts.push_back(entry.offset + after);
            if starts.len() > lines + 1 {
                starts.pop_front();
            }
        }
        end = entry.next_offset();
    }
    if starts.back() == Some(&end) {
        starts.pop_back();
    }
    let skipped = starts.len().saturating_sub(lines);
    Ok(starts.get(skipped).copied().unwrap_or_else(|| reader.offset()))
}
