//! What the init of a container tells the shim, through a pipe only it holds.
//!
//! Reports are needed because an exit status says too little: process 1 of a namespace cannot die of
//! the signal its command died of, and a command that could not be executed has no status at all.

use std::{io, os::fd::BorrowedFd};

use rustix::io::{Errno, read, retry_on_intr, write};

use crate::Exit;

/// Two numbers: what, and how much. Far below what a pipe takes in one piece.
const REPORT_BYTES: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// The command has been executed.
    Started,
    /// It could not be, for this error number.
    NotExecuted(i32),
    /// It has ended. Nothing follows.
    Ended(Exit),
}

// === impl Report ===

impl Report {
    pub(super) fn send(self, pipe: BorrowedFd<'_>) -> io::Result<()> {
        let (what, how) = match self {
            Self::Started => (0, 0),
            Self::NotExecuted(errno) => (1, errno),
            Self::Ended(Exit::Code(code)) => (2, code),
            Self::Ended(Exit::Signal(signal)) => (3, signal),
        };
        let mut bytes = [0; REPORT_BYTES];
        bytes[..4].copy_from_slice(&i32::to_ne_bytes(what));
        bytes[4..].copy_from_slice(&i32::to_ne_bytes(how));
        retry_on_intr(|| write(pipe, &bytes))?;
        Ok(())
    }

    /// The next report; `None` at the end of the pipe, or if there is none yet and the pipe does not
    /// wait.
    pub(super) fn receive(pipe: BorrowedFd<'_>) -> io::Result<Option<Self>> {
        let mut bytes = [0; REPORT_BYTES];
        match retry_on_intr(|| read(pipe, &mut bytes)) {
            Ok(0) | Err(Errno::AGAIN) => Ok(None),
            Ok(REPORT_BYTES) => Self::decode(&bytes).map(Some),
            Ok(_) => Err(io::ErrorKind::InvalidData.into()),
            Err(errno) => Err(errno.into()),
        }
    }

    fn decode(bytes: &[u8; REPORT_BYTES]) -> io::Result<Self> {
        let [a, b, c, d, e, f, g, h] = *bytes;
        let how = i32::from_ne_bytes([e, f, g, h]);
        match i32::from_ne_bytes([a, b, c, d]) {
            0 => Ok(Self::Started),
            1 => Ok(Self::NotExecuted(how)),
            2 => Ok(Self::Ended(Exit::Code(how))),
            3 => Ok(Self::Ended(Exit::Signal(how))),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use rustix::pipe::pipe;

    use super::*;

    #[test]
    fn every_report_comes_through_as_it_was() {
        let (receiver, sender) = pipe().unwrap();
        let reports = [
            Report::Started,
            Report::NotExecuted(2),
            Report::Ended(Exit::Code(255)),
            Report::Ended(Exit::Signal(9)),
        ];
        for report in reports {
            report.send(sender.as_fd()).unwrap();
        }
        drop(sender);
        for report in reports {
            assert_eq!(Report::receive(receiver.as_fd()).unwrap(), Some(report));
        }
        assert_eq!(Report::receive(receiver.as_fd()).unwrap(), None);
    }
}
