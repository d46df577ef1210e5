//! What the shim leaves behind before it builds a root: the host's mounts, its network, its groups, the
//! keys of its session.
//!
//! These calls change the calling thread for good. They are for a process that has one thread and one
//! container to make.

use std::{io, ptr};

use rustix::{
    io::Errno,
    mount::{MountPropagationFlags, mount_change},
    thread::{UnshareFlags, set_thread_groups, unshare_unsafe},
};

use crate::Network;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot give up supplementary groups")]
    Groups(#[source] io::Error),
    #[error("cannot leave the keys of the session")]
    Keys(#[source] io::Error),
    #[error("cannot enter new namespaces")]
    Unshare(#[source] io::Error),
    #[error("cannot keep mounts private")]
    Private(#[source] io::Error),
    #[error("cannot raise the loopback interface")]
    Loopback(#[source] io::Error),
}

/// Enters fresh mount and network namespaces, as far as `network` asks for one.
pub(super) fn enter(network: Network) -> Result<(), Error> {
    // The container runtime sets user and group but leaves these, and they are root's.
    set_thread_groups(&[]).map_err(|errno| Error::Groups(errno.into()))?;
    leave_session_keys().map_err(Error::Keys)?;
    let flags = match network {
        Network::None => UnshareFlags::NEWNS | UnshareFlags::NEWNET,
        Network::Host => UnshareFlags::NEWNS,
    };
    // SAFETY: descriptors stay shared as they are; nothing else in this process, which has one thread,
    // relies on the namespaces it leaves.
    unsafe { unshare_unsafe(flags) }.map_err(|errno| Error::Unshare(errno.into()))?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(|errno| Error::Private(errno.into()))?;
    match network {
        Network::None => raise_loopback().map_err(Error::Loopback),
        Network::Host => Ok(()),
    }
}

/// Keys of a session are open to whoever inherits it, whatever user that becomes, and no namespace parts
/// them: those of root's login, and what one command leaves there for the next.
fn leave_session_keys() -> io::Result<()> {
    let (join, unnamed) = (libc::KEYCTL_JOIN_SESSION_KEYRING, ptr::null::<libc::c_char>());
    // SAFETY: without a name the call reads no memory; it gives this process a session of its own.
    let joined = unsafe { libc::syscall(libc::SYS_keyctl, join, unnamed) };
    if joined >= 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    // A kernel that keeps no keys, or lets nobody here near them: the command does not get there either.
    match Errno::from_io_error(&error) {
        Some(Errno::NOSYS | Errno::PERM) => Ok(()),
        _ => Err(error),
    }
}

/// A new network namespace has its loopback interface down, and nothing else.
fn raise_loopback() -> io::Result<()> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
    use std::os::fd::AsRawFd;

    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    // SAFETY: all zeroes is a valid request: an empty name and no flags.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[0] = b'l'.cast_signed();
    request.ifr_name[1] = b'o'.cast_signed();
    let flags = libc::IFF_UP | libc::IFF_RUNNING;
    request.ifr_ifru.ifru_flags = i16::try_from(flags).expect("the two flags are small");
    // SAFETY: the kernel reads one `ifreq`, which lives through the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
