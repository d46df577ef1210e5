//! Two servers that speak etcd's API without being a store, to show what a store could at most
//! reach on this machine with this wire.
//!
//! The *ceiling* decodes requests and gives fixed answers of realistic size. The *durable ceiling*
//! also appends every write to a plain log, group-committed with fdatasync, and keeps a map. Neither
//! checks anything, and what they keep cannot be read back.

mod kv;
mod lease;
mod log;
mod objects;
mod router;
mod watch;

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use anyhow::{Context, bail};
use etcd_api::{etcdserverpb::ResponseHeader, mvccpb::Event};
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::broadcast,
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use log::Log;
use objects::Objects;
use router::Router;

/// Room for what clients send before the server reads it: what the store gives them.
const STREAM_WINDOW_BYTES: u32 = 1024 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 4 * 1024 * 1024;

/// What one answer may have waiting for the socket; a list passes it many times over.
const SEND_BUFFER_BYTES: usize = 1024 * 1024;

/// Events a watch stream may lag behind the writers before it is ended.
const EVENTS_MAX: usize = 16 * 1024;

/// Any numbers but zero, which clients take for absent.
const CLUSTER_ID: u64 = 0xce11_0001;
const MEMBER_ID: u64 = 0xce11_0002;

/// How a ceiling is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    pub listen: SocketAddr,
    /// Objects that reads find.
    pub objects: usize,
    /// Where the log is kept; without it, nothing is.
    pub data_dir: Option<PathBuf>,
}

/// A ceiling that listens but does not serve yet.
pub struct Ceiling {
    listener: TcpListener,
    state: Arc<State>,
}

/// What the services share.
struct State {
    revision: AtomicI64,
    objects: Objects,
    log: Option<Log>,
    events: broadcast::Sender<Event>,
}

// === impl Options ===

impl Options {
    /// The arguments that [`parse`](Self::parse) reads back: how one process starts another.
    #[must_use]
    pub fn to_args(&self) -> Vec<String> {
        let mut args = vec![self.listen.to_string(), self.objects.to_string()];
        args.extend(self.data_dir.iter().map(|path| path.display().to_string()));
        args
    }

    /// Reads `LISTEN OBJECTS [DATA_DIR]`.
    pub fn parse(args: &[String]) -> anyhow::Result<Self> {
        let (listen, objects, data_dir) = match args {
            [listen, objects] => (listen, objects, None),
            [listen, objects, data_dir] => (listen, objects, Some(PathBuf::from(data_dir))),
            _ => bail!("a ceiling takes LISTEN OBJECTS [DATA_DIR]"),
        };
        Ok(Self {
            listen: listen.parse().with_context(|| format!("`{listen}` is no address"))?,
            objects: objects.parse().with_context(|| format!("`{objects}` is no number"))?,
            data_dir,
        })
    }
}

// === impl Ceiling ===

impl Ceiling {
    pub async fn bind(options: &Options) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(options.listen)
            .await
            .with_context(|| format!("cannot listen on {}", options.listen))?;
        let log = options.data_dir.as_deref().map(Log::create).transpose()?;
        let state = State {
            revision: AtomicI64::new(1),
            objects: Objects::new(options.objects),
            log,
            events: broadcast::Sender::new(EVENTS_MAX),
        };
        Ok(Self { listener, state: Arc::new(state) })
    }

    pub fn address(&self) -> anyhow::Result<SocketAddr> {
        self.listener.local_addr().context("a bound listener has an address")
    }

    /// Serves until `shutdown`; connections still open then are dropped.
    pub async fn run(self, shutdown: CancellationToken) -> anyhow::Result<()> {
        let router = Router::new(&self.state);
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept() => {
                    let (stream, _) = accepted.context("cannot accept a connection")?;
                    connections.spawn(serve(stream, router.clone()));
                }
                // A connection that broke is its client's to report.
                Some(_ended) = connections.join_next() => {}
                () = shutdown.cancelled() => return Ok(()),
            }
        }
    }
}

async fn serve(stream: TcpStream, router: Router) -> anyhow::Result<()> {
    stream.set_nodelay(true)?;
    http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_concurrent_streams(u32::MAX)
        .max_send_buf_size(SEND_BUFFER_BYTES)
        .auto_date_header(false)
        .serve_connection(TokioIo::new(stream), router)
        .await?;
    Ok(())
}

// === impl State ===

impl State {
    fn header(&self) -> Option<ResponseHeader> {
        Some(header(self.revision.load(Ordering::Relaxed)))
    }

    fn next_revision(&self) -> i64 {
        self.revision.fetch_add(1, Ordering::Relaxed) + 1
    }
}

fn header(revision: i64) -> ResponseHeader {
    ResponseHeader { cluster_id: CLUSTER_ID, member_id: MEMBER_ID, revision, raft_term: 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_survive_the_command_line() {
        for data_dir in [None, Some(PathBuf::from("/a/b"))] {
            let options = Options { listen: ([127, 0, 0, 1], 4000).into(), objects: 7, data_dir };
            assert_eq!(Options::parse(&options.to_args()).unwrap(), options);
        }
        assert!(Options::parse(&[]).is_err());
    }
}
