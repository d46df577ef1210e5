//! The whole store as one file: written while the store goes on, read back into an empty journal.
//!
//! ```text
//! magic │ length, piece │ length, piece │ … │ 0 │ padding │ SHA-256 of all before it
//! ```
//!
//! Each piece is a protobuf message with what is left of some revisions; the first one also has the
//! meta table. The padding makes the length a multiple of 512 plus the digest, which is how etcd's
//! tools tell that a snapshot carries one.

mod pace;
mod piece;
mod read;
mod write;

pub use read::{ReadError, Summary, restore, verify};
pub(crate) use write::stream;

/// What a snapshot begins with; the last byte is the format's number.
const MAGIC: [u8; 20] = *b"windlass snapshot\n\0\x01";

/// The digest's place: behind a multiple of this many bytes.
const BLOCK_BYTES: u64 = 512;

/// The largest piece that is believed. Pieces are cut at a few MiB, and one record may be as large as
/// the largest transaction.
const PIECE_BYTES_MAX: u32 = 1 << 30;
