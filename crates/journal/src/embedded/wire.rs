//! Little-endian fields in and out of byte buffers, for everything the journal writes. Never reads
//! past the end and never trusts a length it read.

use mvcc::Revision;

/// Takes fields off the front of a buffer; `None` once it is too short.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

/// Puts fields at the end of a buffer.
pub(super) trait PutFields {
    fn put_u32(&mut self, value: u32);
    fn put_u64(&mut self, value: u64);
    fn put_revision(&mut self, revision: Revision);
}

// === impl Fields ===

impl<'a> Fields<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*taken)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn revision(&mut self) -> Option<Revision> {
        self.array().map(i64::from_le_bytes).map(Revision)
    }

    pub(super) fn remaining(&self) -> usize {
        self.rest.len()
    }
}

// === impl PutFields ===

impl PutFields for Vec<u8> {
    fn put_u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn put_u64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn put_revision(&mut self, revision: Revision) {
        self.extend_from_slice(&revision.0.to_le_bytes());
    }
}
