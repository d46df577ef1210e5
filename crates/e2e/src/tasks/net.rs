//! Networks that reach nothing: each has a loopback and no way out but the links that somebody makes.
//!
//! The kernel keeps one for as long as it is open here, so none outlives the test.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Raises the loopback, says so, and stays until the network was opened.
const HOLD: &str = "ip link set lo up && echo up && exec cat";

/// Everything here is on one machine.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// A network of its own.
#[derive(Debug)]
pub struct Network {
    namespace: File,
}

// === impl Network ===

impl Network {
    pub fn new() -> Result<Self> {
        let mut holder = Command::new("unshare")
            .args(["--net", "sh", "-c", HOLD])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("run unshare")?;
        let mut said = String::new();
        let stdout = holder.stdout.take().context("its output is a pipe")?;
        BufReader::new(stdout).read_line(&mut said).context("wait for the loopback")?;
        ensure!(said == "up\n", "no network of its own: the loopback cannot be raised");
        let namespace = File::open(format!("/proc/{}/ns/net", holder.id()));
        let namespace = namespace.context("open the network")?;
        drop(holder.stdin.take());
        holder.wait().context("wait for unshare")?;
        Ok(Self { namespace })
    }

    /// A name by which other programs of root can enter it while it is open here.
    #[must_use]
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.namespace.as_raw_fd())
    }

    /// A listener inside; it may be accepted from anywhere.
    pub fn bind(&self, address: SocketAddr) -> io::Result<TcpListener> {
        self.within(|| TcpListener::bind(address))
    }

    /// A connection to somebody inside.
    pub fn connect(&self, address: SocketAddr) -> io::Result<TcpStream> {
        self.within(|| TcpStream::connect_timeout(&address, CONNECT_TIMEOUT))
    }

    /// Sockets belong to the network of the thread that makes them, so a thread of its own goes there.
    fn within<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        let inside = || {
            move_into_link_name_space(self.namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            work()
        };
        let joined = thread::scope(|scope| scope.spawn(inside).join());
        joined.unwrap_or_else(|_panic| Err(io::Error::other("the thread panicked")))
    }
}
