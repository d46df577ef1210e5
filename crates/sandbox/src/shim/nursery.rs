//! Where shims come from: one process that a daemon starts from the sealed copy of our binary, and
//! that forks a shim for each control socket it is handed.
//!
//! Executing a binary of this size costs more than all a shim does; a fork of a process that is ready
//! costs a tenth. The nursery has one thread and runs nothing itself, so its forks are as good as new.
//! It ends with its daemon; its shims do not.

use std::{
    ffi::CStr,
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsFd, OwnedFd},
    process::Child,
    time::Duration,
};

use nix::sys::signal::{SigmaskHow, Signal, sigprocmask};
use parking_lot::Mutex;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
        sockopt::{Timeout, set_socket_timeout},
    },
    process::{WaitOptions, setsid, wait},
    thread::set_name,
};

use super::program::Program;
use crate::Deadline;

/// Ended shims are taken in when the next one is born, or after this long.
const REAP_EVERY: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };
/// A nursery that has taken nothing in for this long stands still. Some hundreds of sockets lie ready
/// for it before anybody waits.
const TAKE_MAX: Duration = Duration::from_secs(5);
/// What the nursery and its shims are called in lists of processes.
const NAME: &CStr = c"windlass-shim";
/// By these whole groups of processes are told to end: by a terminal, a service manager, a machine that
/// goes down. They are meant for the daemon, which knows what to do with its attempts; a shim that ended
/// by one would have its command killed, and its end taken for the command's own.
const HELD_OFF: [Signal; 4] = [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM];
/// A message is one byte; what counts is the descriptor that comes with it.
const MESSAGE: [u8; 1] = [0];

/// The daemon's end.
#[derive(Debug)]
pub(crate) struct Nursery {
    program: Program,
    live: Mutex<Slot>,
}

/// The nursery in use.
#[derive(Debug, Default)]
struct Slot {
    /// `None`: not started yet, found dead, or given up.
    live: Option<Live>,
    /// How many there have been.
    started: u64,
}

#[derive(Debug)]
struct Live {
    number: u64,
    process: Child,
    socket: OwnedFd,
}

/// A shim that is asked for. Nobody knows yet whether it comes.
#[derive(Debug)]
pub(crate) struct Born {
    /// The daemon's end of its control socket, which ends when the shim does.
    pub(crate) control: OwnedFd,
    /// Which nursery it is to come from.
    pub(crate) nursery: u64,
}

/// What a process of the nursery turns out to be.
pub(super) enum Role {
    /// A new shim, with its control socket.
    Shim(OwnedFd),
    /// The nursery itself, its daemon gone.
    Done,
}

// === impl Nursery ===

impl Nursery {
    pub(crate) fn new(program: Program) -> Self {
        Self { program, live: Mutex::default() }
    }

    /// Asks for a new shim. A nursery that died, or takes nothing more in, is replaced: its shims live
    /// on without it.
    pub(crate) fn bear(&self, deadline: &Deadline) -> io::Result<Born> {
        let (control, shims) = pair(SocketType::STREAM)?;
        let mut slot = self.live.lock();
        if let Some(nursery) = &slot.live
            && hand_over(&nursery.socket, &shims).is_ok()
        {
            return Ok(Born { control, nursery: nursery.number });
        }
        slot.started += 1;
        let number = slot.started;
        let nursery = slot.live.insert(self.start(number, deadline)?);
        hand_over(&nursery.socket, &shims)?;
        Ok(Born { control, nursery: number })
    }

    /// No shim came of this one: it is killed, and whoever asks next gets another. What it was asked
    /// for and has not borne ends with it.
    pub(crate) fn give_up(&self, number: u64) {
        let mut slot = self.live.lock();
        let given_up = slot.live.take_if(|nursery| nursery.number == number);
        // Its end is waited for without keeping others from theirs.
        drop(slot);
        drop(given_up);
    }

    fn start(&self, number: u64, deadline: &Deadline) -> io::Result<Live> {
        let (socket, theirs) = pair(SocketType::SEQPACKET)?;
        set_socket_timeout(&socket, Timeout::Send, Some(TAKE_MAX))?;
        let mut command = self.program.command();
        // Standard streams are the only descriptors that can be passed without code between fork and
        // exec. Standard error stays the daemon's, for the words of a panic.
        let process =
            command.stdin(theirs).stdout(deadline.memory().try_clone_to_owned()?).spawn()?;
        Ok(Live { number, process, socket })
    }
}

// === impl Live ===

impl Drop for Live {
    fn drop(&mut self) {
        // It may be dead already, which is no error; stopped or not, it is gone after this.
        let ended = self.process.kill().and_then(|()| self.process.wait());
        debug_assert!(ended.is_ok(), "a child of our own can be killed: {ended:?}");
    }
}

fn pair(kind: SocketType) -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?)
}

fn hand_over(socket: &OwnedFd, descriptor: &OwnedFd) -> io::Result<()> {
    let descriptors = [descriptor.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)), "there is room for one");
    sendmsg(socket, &[IoSlice::new(&MESSAGE)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Is the nursery: returns in each new shim, and in the nursery when nobody needs it any more.
#[expect(unsafe_code, reason = "a shim is a fork of its nursery")]
pub(super) fn serve(socket: &OwnedFd) -> io::Result<Role> {
    setsid()?;
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&HELD_OFF.into_iter().collect()), None)?;
    set_name(NAME)?;
    let mut children = 0_usize;
    loop {
        children -= reap(children)?;
        let timeout = (children > 0).then_some(&REAP_EVERY);
        match poll(&mut [PollFd::new(socket, PollFlags::IN)], timeout) {
            Ok(0) | Err(Errno::INTR) => continue,
            polled => polled?,
        };
        let Some(control) = receive(socket)? else { return Ok(Role::Done) };
        // SAFETY: this process has one thread, so the child has all of its state in order.
        match unsafe { libc::fork() } {
            0 => return Ok(Role::Shim(control)),
            // The socket is closed here, so the daemon learns that nobody will answer on it.
            -1 => {}
            _ => children += 1,
        }
    }
}

/// How many of the children have ended by now.
fn reap(children: usize) -> io::Result<usize> {
    let mut ended = 0;
    while ended < children {
        match wait(WaitOptions::NOHANG) {
            Ok(None) => break,
            Ok(Some(_)) => ended += 1,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(ended)
}

/// The next control socket; `None` when the daemon is gone.
fn receive(socket: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = MESSAGE;
    let received =
        recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC);
    match received {
        Ok(received) if received.bytes == 0 => return Ok(None),
        Err(Errno::CONNRESET) => return Ok(None),
        received => received?,
    };
    let descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let control = descriptors.flatten().next();
    control.map(Some).ok_or_else(|| io::Error::other("a message without a descriptor"))
}
