//! How bytes are laid out: numbers and strings as MessagePack, rows as binary tuples, both in
//! frames with a length before them. Pure: nothing here knows a socket.

pub(crate) mod frame;
pub(crate) mod handshake;
pub(crate) mod op;
pub(crate) mod pack;
pub(crate) mod tuple;
pub(crate) mod unpack;

#[cfg(test)]
pub(crate) mod tests;

/// Why bytes from a server could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    #[error("the message ends in the middle of {what}")]
    Short { what: &'static str },
    #[error("{what} was expected, byte 0x{found:02x} was found")]
    Unexpected { what: &'static str, found: u8 },
    #[error("{what} is out of range")]
    Range { what: &'static str },
    #[error("a string is not UTF-8")]
    NotUtf8,
    #[error("{what} takes {bytes} bytes, which fits no value of its type")]
    Width { what: &'static str, bytes: usize },
    #[error("the offsets of a row do not rise")]
    Offsets,
    #[error("column type {id} is not known")]
    ColumnType { id: i32 },
    #[error("a null stands where a value must be")]
    Null,
}
