//! A way from one network to another that can be made to fail: cut in one direction or both, slow, or
//! broken. Bytes that cannot pass wait, as they would for TCP to send them again.
//!
//! It stands in for the kernel's own emulation of bad networks, which many kernels lack.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::{self, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Instant, sleep_until};

use super::net::Network;

/// Read and passed on at once.
const PIECE_BYTES: usize = 64 << 10;

/// Where a link leads.
#[derive(Clone, Debug)]
pub enum Target {
    /// To somebody in the test's own network.
    Outside(SocketAddr),
    Inside(Arc<Network>, SocketAddr),
}

/// How a link is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weather {
    /// Whether bytes pass to the target.
    pub there: bool,
    /// Whether bytes pass back.
    pub back: bool,
    /// Added to every piece, both ways.
    pub delay: Duration,
    /// Connections of an earlier age are broken.
    age: u64,
    /// Connections of an earlier era hang: they stay, and nothing passes.
    era: u64,
}

/// A running link; dropping it breaks every connection.
#[derive(Debug)]
pub struct Link {
    weather: watch::Sender<Weather>,
    /// Owns the task that accepts, which owns the connections.
    _accepting: JoinSet<()>,
}

#[derive(Clone, Copy, Debug)]
enum Way {
    There,
    Back,
}

// === impl Weather ===

impl Weather {
    const FINE: Self = Self { there: true, back: true, delay: Duration::ZERO, age: 0, era: 0 };

    /// Whether bytes pass on a connection of that era.
    fn passes(&self, way: Way, era: u64) -> bool {
        let is_open = match way {
            Way::There => self.there,
            Way::Back => self.back,
        };
        is_open && era == self.era
    }
}

// === impl Link ===

impl Link {
    /// Passes on what arrives at an address of a network.
    pub fn open(from: &Network, address: SocketAddr, target: Target) -> Result<Self> {
        let listener = from.bind(address).with_context(|| format!("listen at {address}"))?;
        Self::serve(listener, target)
    }

    /// Passes on what arrives at a port of the test's own network.
    pub fn here(port: u16, target: Target) -> Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        Self::serve(listener.with_context(|| format!("listen at port {port}"))?, target)
    }

    /// Passes on what arrives at a port of the test's own network, which is returned too.
    pub fn near(target: Target) -> Result<(Self, u16)> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let listener = listener.context("listen at a free port")?;
        let port = listener.local_addr().context("read the port that was bound")?.port();
        Ok((Self::serve(listener, target)?, port))
    }

    fn serve(listener: std::net::TcpListener, target: Target) -> Result<Self> {
        listener.set_nonblocking(true).context("make the listener asynchronous")?;
        let listener = TcpListener::from_std(listener).context("register the listener")?;
        let (weather, forecast) = watch::channel(Weather::FINE);
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, target, forecast));
        Ok(Self { weather, _accepting: accepting })
    }

    /// Nothing passes.
    pub fn cut(&self) {
        self.weather.send_modify(|weather| (weather.there, weather.back) = (false, false));
    }

    /// Requests arrive and their answers do not.
    pub fn cut_back(&self) {
        self.weather.send_modify(|weather| (weather.there, weather.back) = (true, false));
    }

    pub fn slow(&self, delay: Duration) {
        self.weather.send_modify(|weather| weather.delay = delay);
    }

    /// Ends every connection; new ones can be made.
    pub fn break_connections(&self) {
        self.weather.send_modify(|weather| weather.age += 1);
    }

    /// Nothing more passes on the connections there are, which nobody is told; new ones are fine.
    pub fn hang_connections(&self) {
        self.weather.send_modify(|weather| weather.era += 1);
    }

    pub fn heal(&self) {
        self.weather.send_modify(|weather| {
            *weather = Weather { age: weather.age, era: weather.era, ..Weather::FINE };
        });
    }
}

async fn accept(listener: TcpListener, target: Target, mut weather: watch::Receiver<Weather>) {
    let mut connections = JoinSet::new();
    let mut age = weather.borrow().age;
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((near, _)) => {
                    connections.spawn(carry(near, target.clone(), weather.clone()));
                }
                // Out of descriptors, or the peer left while it waited: the next may do better.
                Err(_refused) => tokio::task::yield_now().await,
            },
            changed = weather.changed() => {
                if changed.is_err() {
                    return;
                }
                let now = weather.borrow_and_update().age;
                if now != age {
                    age = now;
                    connections.abort_all();
                }
            }
            Some(_ended) = connections.join_next() => {}
        }
    }
}

/// One connection, until either side ends it. How it ended is for its two ends to tell.
async fn carry(near: TcpStream, target: Target, mut weather: watch::Receiver<Weather>) {
    let era = weather.borrow().era;
    // While nothing passes, nobody can be asked to answer.
    if weather.wait_for(|weather| weather.there).await.is_err() {
        return;
    }
    let Ok(far) = target.connect().await else { return };
    for stream in [&near, &far] {
        if stream.set_nodelay(true).is_err() {
            return;
        }
    }
    let (near_read, near_write) = near.into_split();
    let (far_read, far_write) = far.into_split();
    tokio::select! {
        _there = pump(near_read, far_write, weather.clone(), (Way::There, era)) => {}
        _back = pump(far_read, near_write, weather.clone(), (Way::Back, era)) => {}
    }
}

async fn pump(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    mut weather: watch::Receiver<Weather>,
    (way, era): (Way, u64),
) -> io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let length = from.read(&mut piece).await?;
        let passed = weather.wait_for(|weather| weather.passes(way, era)).await;
        let Ok(delay) = passed.map(|weather| weather.delay) else { return Ok(()) };
        sleep_until(Instant::now() + delay).await;
        if length == 0 {
            return to.shutdown().await;
        }
        to.write_all(&piece[..length]).await?;
    }
}

// === impl Target ===

impl Target {
    async fn connect(&self) -> io::Result<TcpStream> {
        match self.clone() {
            Self::Outside(address) => TcpStream::connect(address).await,
            Self::Inside(network, address) => {
                let connected = spawn_blocking(move || network.connect(address)).await;
                let stream = connected.map_err(io::Error::other)??;
                stream.set_nonblocking(true)?;
                TcpStream::from_std(stream)
            }
        }
    }
}
