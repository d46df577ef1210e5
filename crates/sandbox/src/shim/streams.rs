//! The pipes between a command and its shim.

use std::{
    fs::File,
    io::{self, Write},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    buffer::spare_capacity,
    fs::{OFlags, fcntl_setfl},
    io::{Errno, read},
    pipe::{PipeFlags, pipe_with},
};

use crate::{
    boottime::wall_time,
    log::{RECORD_BYTES_MAX, Stream, Writer},
    runtime::Stdio,
};

/// What is still read after the end, of each stream: more than a pipe holds. All writers are dead by
/// then, unless one handed its end to a stranger, for whom nobody waits.
const DRAIN_BYTES_MAX: usize = 2 << 20;

/// The shim's ends of what the command writes.
#[derive(Debug)]
pub(crate) struct Pipes {
    stdout: Option<File>,
    stderr: Option<File>,
    /// Room for one piece. It is never filled in advance: most commands write little, and memory that
    /// is not touched costs a shim nothing.
    buffer: Vec<u8>,
}

// === impl Pipes ===

impl Pipes {
    /// Both ends. The input lies in its pipe from the start, so nobody has to feed it.
    pub(crate) fn new(input: &[u8]) -> io::Result<(Self, Stdio)> {
        let (stdout, command_stdout) = output()?;
        let (stderr, command_stderr) = output()?;
        let stdio = Stdio { stdin: filled(input)?, stdout: command_stdout, stderr: command_stderr };
        let buffer = Vec::with_capacity(RECORD_BYTES_MAX);
        Ok((Self { stdout: Some(stdout), stderr: Some(stderr), buffer }, stdio))
    }

    /// The ends that may still give something.
    pub(crate) fn open(&self) -> impl Iterator<Item = (Stream, BorrowedFd<'_>)> {
        let both = [(Stream::Stdout, &self.stdout), (Stream::Stderr, &self.stderr)];
        both.into_iter().filter_map(|(stream, pipe)| Some((stream, pipe.as_ref()?.as_fd())))
    }

    /// Carries one piece into the log. Returns its size; 0 if there is nothing now, or ever.
    pub(crate) fn carry(&mut self, stream: Stream, log: &mut Writer) -> io::Result<usize> {
        let pipe = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        let Some(file) = pipe else { return Ok(0) };
        loop {
            self.buffer.clear();
            match read(&*file, spare_capacity(&mut self.buffer)) {
                Ok(0) => {
                    *pipe = None;
                    return Ok(0);
                }
                Ok(size) => {
                    log.append(stream, &self.buffer, wall_time());
                    return Ok(size);
                }
                Err(Errno::AGAIN) => return Ok(0),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Carries what is left once the command is gone.
    pub(crate) fn drain(&mut self, log: &mut Writer) -> io::Result<()> {
        for stream in [Stream::Stdout, Stream::Stderr] {
            let mut carried = 0;
            while carried < DRAIN_BYTES_MAX {
                match self.carry(stream, log)? {
                    0 => break,
                    size => carried += size,
                }
            }
        }
        Ok(())
    }
}

/// A pipe whose first end never blocks.
fn output() -> io::Result<(File, OwnedFd)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    fcntl_setfl(&read, OFlags::NONBLOCK)?;
    Ok((read.into(), write))
}

/// An input that gives these bytes and then ends.
fn filled(input: &[u8]) -> io::Result<OwnedFd> {
    if input.is_empty() {
        return Ok(File::open("/dev/null")?.into());
    }
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    fcntl_setfl(&write, OFlags::NONBLOCK)?;
    // A pipe takes 64 KiB by default: an input that does not fit is refused, not waited for.
    File::from(write).write_all(input)?;
    Ok(read)
}
