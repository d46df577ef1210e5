//! Makes the checksums of made-up frames right, so that a fuzzer gets behind them. Never part of a
//! product: it would make damage look sound.

use super::{CHANGE_HEADER_BYTES, Frame, HEADER_BYTES, MAGIC, Raw, Seed, Span, change_crc};
use crate::embedded::wire::Fields;

/// Seals frame after frame. It stops where no frame begins, so that what follows stays a torn tail.
pub(in crate::embedded) fn seal(mut bytes: &mut [u8], seed: Seed) {
    while let Some(len) = claimed_len(bytes) {
        let (frame, rest) = bytes.split_at_mut(len);
        seal_frame(frame, seed);
        seal_changes(frame, seed);
        seal_frame(frame, seed);
        bytes = rest;
    }
}

fn claimed_len(bytes: &[u8]) -> Option<usize> {
    let mut fields = Fields::new(bytes);
    (fields.u32()? == MAGIC).then_some(())?;
    let len = HEADER_BYTES + Raw::read(fields)?.payload_len as usize;
    (len <= bytes.len()).then_some(len)
}

fn seal_frame(frame: &mut [u8], seed: Seed) {
    let crc = crc32c::crc32c_append(seed.0, &frame[8..]);
    frame[4..8].copy_from_slice(&crc.to_le_bytes());
}

fn seal_changes(frame: &mut [u8], seed: Seed) {
    let contents = Frame::decode(frame, seed).and_then(|frame| frame.contents());
    for Span { position, start, len } in contents.unwrap_or_default().changes {
        let begin = start as usize + CHANGE_HEADER_BYTES;
        let crc = change_crc(position, &frame[begin..begin + len as usize]);
        frame[begin - 4..begin].copy_from_slice(&crc.to_le_bytes());
    }
}
