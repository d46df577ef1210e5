//! Between a client and the store: passes everything on, or loses answers, or cuts the line.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::waiting::until;

const CHUNK_BYTES: usize = 16 << 10;

/// What happens to what is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Whole,
    /// Requests arrive; no answer comes back.
    Mute,
    /// Nothing arrives, nothing comes back, and nobody is told.
    Cut,
}

/// A line that can be broken. Dropping it ends all connections.
pub(crate) struct Proxy {
    address: SocketAddr,
    line: watch::Sender<Line>,
    lost: Lost,
    _running: JoinSet<()>,
}

/// How many pieces were lost.
type Lost = Arc<AtomicUsize>;

/// One way of one connection.
struct Way {
    from: OwnedReadHalf,
    to: OwnedWriteHalf,
    line: watch::Receiver<Line>,
    lost: Lost,
    is_answers: bool,
}

// === impl Proxy ===

impl Proxy {
    pub(crate) async fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("it is bound");
        let (line, seen) = watch::channel(Line::Whole);
        let lost = Lost::default();
        let mut running = JoinSet::new();
        running.spawn(accept(listener, target, seen, lost.clone()));
        Self { address, line, lost, _running: running }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn mute(&self) {
        self.lost.store(0, Ordering::SeqCst);
        self.line.send_replace(Line::Mute);
    }

    pub(crate) fn cut(&self) {
        self.lost.store(0, Ordering::SeqCst);
        self.line.send_replace(Line::Cut);
    }

    /// Waits until the line as it is now has lost something.
    pub(crate) async fn until_lost(&self) {
        let lost = self.lost.clone();
        until("a loss", async || (lost.load(Ordering::SeqCst) > 0).then_some(())).await;
    }

    /// Whoever comes from now on gets through. Connections that lost something are over.
    pub(crate) fn heal(&self) {
        self.line.send_replace(Line::Whole);
    }
}

async fn accept(
    listener: TcpListener,
    target: SocketAddr,
    line: watch::Receiver<Line>,
    lost: Lost,
) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        connections.spawn(connect(client, target, line.clone(), lost.clone()));
        while connections.try_join_next().is_some() {}
    }
}

async fn connect(client: TcpStream, target: SocketAddr, line: watch::Receiver<Line>, lost: Lost) {
    let Ok(server) = TcpStream::connect(target).await else { return };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let way = |from, to, is_answers| {
        let (line, lost) = (line.clone(), lost.clone());
        Way { from, to, line, lost, is_answers }
    };
    let requests = way(from_client, to_server, false);
    let answers = way(from_server, to_client, true);
    // When one way ends, so does the other: both are dropped.
    tokio::select! {
        () = requests.run() => {}
        () = answers.run() => {}
    }
}

// === impl Way ===

impl Way {
    async fn run(mut self) {
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut has_lost = false;
        loop {
            let read = tokio::select! {
                read = self.from.read(&mut chunk) => read,
                changed = self.line.changed() => {
                    // A stream that lost a part of itself cannot go on.
                    if changed.is_err() || (has_lost && *self.line.borrow() == Line::Whole) {
                        return;
                    }
                    continue;
                }
            };
            let Ok(length @ 1..) = read else { return };
            let is_lost = match *self.line.borrow() {
                Line::Whole => false,
                Line::Mute => self.is_answers,
                Line::Cut => true,
            };
            if is_lost {
                has_lost = true;
                self.lost.fetch_add(1, Ordering::SeqCst);
            }
            if !is_lost && self.to.write_all(&chunk[..length]).await.is_err() {
                return;
            }
        }
    }
}
