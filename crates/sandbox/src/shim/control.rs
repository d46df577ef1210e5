//! What a daemon and its shim say to each other: frames of a length and JSON, over a socket.
//!
//! The daemon says what to do, once, and then only when to stop. The shim says how far it is. Neither
//! ever waits for the other: all that a shim says fits the socket's buffer.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::Duration,
};

use rustix::fs::{OFlags, fcntl_setfl};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{AttemptId, Ended, Kind, Site, Spec};

/// A spec has at most 32 KiB of words and 16 KiB of input, which JSON makes up to four times longer.
const FRAME_BYTES_MAX: usize = 512 << 10;
const LENGTH_BYTES: usize = 4;
/// Read at once: most of what a daemon says.
const PIECE_BYTES: usize = 4 << 10;
/// Of an error that a shim tells.
const TROUBLE_BYTES_MAX: usize = 2048;

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) id: AttemptId,
    pub(crate) kind: Kind,
    pub(crate) site: Site,
    pub(crate) spec: Spec,
}

/// The daemon's only later word: end within the grace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stop {
    pub(crate) grace: Duration,
}

/// What a shim says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Word {
    /// The shim has the record, and is this process.
    Begun {
        pid: i32,
    },
    /// All is ready; the command runs only after this.
    Created,
    Started,
    /// The result is on disk.
    Ended(Ended),
    /// The shim gives up, and nothing more is known.
    Trouble(String),
}

/// Why the other side was not understood.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read")]
    Read(#[source] io::Error),
    #[error("the other side left before it said what to do")]
    Left,
    #[error("a frame of {bytes} bytes is above the limit of {FRAME_BYTES_MAX}")]
    TooLarge { bytes: usize },
    #[error("a frame makes no sense")]
    Senseless(#[source] serde_json::Error),
}

/// Puts frames together from what was read.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    bytes: Vec<u8>,
}

/// The shim's end.
#[derive(Debug)]
pub(super) struct Control {
    socket: File,
    frames: Frames,
    is_open: bool,
}

pub(crate) fn encode(message: &impl Serialize) -> Vec<u8> {
    let mut frame = vec![0; LENGTH_BYTES];
    serde_json::to_writer(&mut frame, message).expect("plain data");
    let length = u32::try_from(frame.len() - LENGTH_BYTES).expect("messages are small");
    frame[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    frame
}

// === impl Frames ===

impl Frames {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole frame.
    pub(crate) fn pop<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Error> {
        let Some((length, rest)) = self.bytes.split_first_chunk() else { return Ok(None) };
        let bytes = u32::from_le_bytes(*length) as usize;
        if bytes > FRAME_BYTES_MAX {
            return Err(Error::TooLarge { bytes });
        }
        let Some(frame) = rest.get(..bytes) else { return Ok(None) };
        let message = serde_json::from_slice(frame).map_err(Error::Senseless)?;
        self.bytes.drain(..LENGTH_BYTES + bytes);
        Ok(Some(message))
    }
}

// === impl Control ===

impl Control {
    pub(super) fn new(socket: OwnedFd) -> Self {
        Self { socket: socket.into(), frames: Frames::default(), is_open: true }
    }

    /// Waits for what to do. From then on nothing here waits.
    pub(super) fn job(&mut self) -> Result<Job, Error> {
        loop {
            if let Some(job) = self.frames.pop()? {
                fcntl_setfl(&self.socket, OFlags::NONBLOCK)
                    .map_err(|errno| Error::Read(errno.into()))?;
                return Ok(job);
            }
            if !self.read()? {
                return Err(Error::Left);
            }
        }
    }

    /// What to wait for, as long as the daemon is there.
    pub(super) fn listening(&self) -> Option<BorrowedFd<'_>> {
        self.is_open.then(|| self.socket.as_fd())
    }

    /// The stops that were said meanwhile.
    pub(super) fn stops(&mut self) -> Result<Vec<Duration>, Error> {
        while self.is_open && self.read()? {}
        let mut stops = Vec::new();
        while let Some(Stop { grace }) = self.frames.pop()? {
            stops.push(grace);
        }
        Ok(stops)
    }

    /// A daemon that is gone hears nothing, and needs not: its successor reads the record.
    pub(super) fn tell(&mut self, word: &Word) {
        let word = match word {
            Word::Trouble(text) => {
                let length = text.floor_char_boundary(TROUBLE_BYTES_MAX);
                &Word::Trouble(text[..length].to_owned())
            }
            other => other,
        };
        if self.socket.write_all(&encode(word)).is_err() {
            self.is_open = false;
        }
    }

    /// Reads one piece. Whether there may be more.
    fn read(&mut self) -> Result<bool, Error> {
        let mut piece = [0; PIECE_BYTES];
        match self.socket.read(&mut piece) {
            Ok(0) => {
                self.is_open = false;
                Ok(false)
            }
            Ok(size) => {
                self.frames.push(&piece[..size]);
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            // Whoever was killed with words unread resets the connection.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                self.is_open = false;
                Ok(false)
            }
            Err(error) => Err(Error::Read(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_out_as_they_went_in_however_they_are_cut() {
        let stops = [0, 7, 600].map(|seconds| Stop { grace: Duration::from_secs(seconds) });
        let bytes: Vec<u8> = stops.iter().flat_map(encode).collect();
        for size in 1..=bytes.len() {
            let mut frames = Frames::default();
            let mut heard = Vec::new();
            for piece in bytes.chunks(size) {
                frames.push(piece);
                while let Some(stop) = frames.pop::<Stop>().unwrap() {
                    heard.push(stop);
                }
            }
            assert_eq!(heard, stops, "in pieces of {size}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        let mut frames = Frames::default();
        frames.push(&u32::MAX.to_le_bytes());
        assert!(matches!(frames.pop::<Stop>(), Err(Error::TooLarge { .. })));
        let mut frames = Frames::default();
        frames.push(&encode(&"no stop"));
        assert!(matches!(frames.pop::<Stop>(), Err(Error::Senseless(_))));
    }
}
