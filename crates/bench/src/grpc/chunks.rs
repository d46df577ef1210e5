//! What has arrived of a body, as it arrived. Decoding straight from the pieces copies a field only
//! where it crosses from one into the next.

use std::collections::VecDeque;

use bytes::{Buf, BufMut, Bytes, BytesMut};

#[derive(Default)]
pub(super) struct Chunks {
    /// None of them empty.
    pieces: VecDeque<Bytes>,
    remaining: usize,
}

// === impl Chunks ===

impl Chunks {
    pub(super) fn push(&mut self, piece: Bytes) {
        if !piece.is_empty() {
            self.remaining += piece.len();
            self.pieces.push_back(piece);
        }
    }

    pub(super) fn pieces(&self) -> impl Iterator<Item = &Bytes> {
        self.pieces.iter()
    }
}

impl Buf for Chunks {
    fn remaining(&self) -> usize {
        self.remaining
    }

    fn chunk(&self) -> &[u8] {
        self.pieces.front().map_or(&[], |piece| &piece[..])
    }

    fn advance(&mut self, mut count: usize) {
        assert!(count <= self.remaining, "advanced past the end");
        self.remaining -= count;
        while count > 0 {
            let front = self.pieces.front_mut().expect("the pieces add up to what remains");
            if count < front.len() {
                front.advance(count);
                return;
            }
            count -= front.len();
            self.pieces.pop_front();
        }
    }

    fn copy_to_bytes(&mut self, length: usize) -> Bytes {
        assert!(length <= self.remaining, "read past the end");
        match self.pieces.front_mut() {
            Some(front) if front.len() > length => {
                self.remaining -= length;
                front.split_to(length)
            }
            _ => {
                let mut copy = BytesMut::with_capacity(length);
                copy.put(self.take(length));
                copy.freeze()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunks(pieces: &[&'static [u8]]) -> Chunks {
        let mut chunks = Chunks::default();
        for piece in pieces {
            chunks.push(Bytes::from_static(piece));
        }
        chunks
    }

    #[test]
    fn fields_come_out_whole_wherever_the_pieces_end() {
        let mut chunks = chunks(&[b"ab", b"", b"cde", b"f"]);
        assert_eq!(chunks.remaining(), 6);
        assert_eq!(chunks.copy_to_bytes(1), "a");
        assert_eq!(chunks.copy_to_bytes(3), "bcd");
        assert_eq!(chunks.chunk(), b"e");
        assert_eq!(chunks.copy_to_bytes(2), "ef");
        assert!(!chunks.has_remaining());
    }

    #[test]
    fn advancing_drops_the_pieces_it_passes() {
        let mut chunks = chunks(&[b"ab", b"cd"]);
        chunks.advance(2);
        assert_eq!(chunks.chunk(), b"cd");
        chunks.advance(2);
        assert_eq!(chunks.remaining(), 0);
    }
}
