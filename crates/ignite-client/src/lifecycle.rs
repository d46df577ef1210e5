//! The tasks of a connection, and its first words. The only place that spawns.
//!
//! Two tasks per connection, owned by it: one writes what callers send, one reads answers and asks
//! whether the other side lives. The end of either ends the connection, with the reason for all who
//! wait.

use std::{
    io::{self, ErrorKind},
    sync::Arc,
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
    sync::mpsc,
    task::JoinSet,
    time::{Instant, interval_at},
};
use tokio_rustls::TlsConnector;

use crate::{
    Error, Options, Peer,
    connection::Waiting,
    wire::{
        frame::{self, MAGIC},
        handshake, op,
    },
};

/// Room for one read from the socket; it grows to the message that is being read.
const READ_BYTES: usize = 64 << 10;
/// The server hangs up after its idle timeout; it hears of us this many times before.
const HEARTBEATS_PER_TIMEOUT: u32 = 3;
const HEARTBEAT_EVERY_MIN: Duration = Duration::from_millis(100);

/// A socket, with or without TLS.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

pub(crate) async fn connect(address: &str) -> Result<TcpStream, Error> {
    let failed =
        |source: io::Error| Error::Connect { address: address.to_owned(), source: source.into() };
    let socket = TcpStream::connect(address).await.map_err(failed)?;
    socket.set_nodelay(true).map_err(failed)?;
    Ok(socket)
}

/// Exchanges first words.
pub(crate) async fn greet(
    address: &str,
    socket: TcpStream,
    options: &Options,
) -> Result<(Box<dyn Stream>, Peer), Error> {
    let failed =
        |source: io::Error| Error::Connect { address: address.to_owned(), source: source.into() };
    let mut stream: Box<dyn Stream> = match &options.tls {
        None => Box::new(socket),
        Some(tls) => {
            let connector = TlsConnector::from(Arc::clone(&tls.config));
            let name = tls.name_of(address).map_err(failed)?;
            Box::new(connector.connect(name, socket).await.map_err(failed)?)
        }
    };
    let credentials = options.credentials.as_ref().map(|credentials| handshake::Credentials {
        user: &credentials.user,
        password: &credentials.password,
    });
    let not_ignite = || Error::NotIgnite { address: address.to_owned() };
    stream.write_all(&handshake::request(credentials)).await.map_err(failed)?;
    stream.flush().await.map_err(failed)?;
    let mut magic = [0; MAGIC.len()];
    stream.read_exact(&mut magic).await.map_err(failed)?;
    if magic != MAGIC {
        return Err(not_ignite());
    }
    let mut buffer = BytesMut::new();
    loop {
        match frame::next(&mut buffer, options.message_bytes_max) {
            Err(_too_long) => return Err(not_ignite()),
            Ok(Some(message)) => {
                return match handshake::response(message)? {
                    Ok(peer) => Ok((stream, peer)),
                    Err(source) => Err(Error::Refused { address: address.to_owned(), source }),
                };
            }
            Ok(None) => {
                if stream.read_buf(&mut buffer).await.map_err(failed)? == 0 {
                    return Err(failed(io::ErrorKind::UnexpectedEof.into()));
                }
            }
        }
    }
}

/// Starts what moves the bytes of a connection.
pub(crate) fn start(
    stream: Box<dyn Stream>,
    outgoing: mpsc::Receiver<Bytes>,
    waiting: Arc<Waiting>,
    peer: &Peer,
    options: &Options,
) -> JoinSet<()> {
    let (reader, writer) = tokio::io::split(stream);
    let (ping, pings) = mpsc::channel(1);
    let mut tasks = JoinSet::new();
    let ends = Arc::clone(&waiting);
    tasks.spawn(async move {
        if let Err(source) = write(writer, outgoing, pings).await {
            ends.on_end(ends.lost(source));
        }
    });
    let heart =
        Heart { every: heartbeat_every(peer, options), timeout: options.heartbeat_timeout, ping };
    let bytes_max = options.message_bytes_max;
    tasks.spawn(async move {
        let error = read(reader, &waiting, &heart, bytes_max).await;
        waiting.on_end(error);
    });
    tasks
}

/// How a silent connection is kept and watched.
struct Heart {
    every: Duration,
    timeout: Duration,
    ping: mpsc::Sender<Bytes>,
}

fn heartbeat_every(peer: &Peer, options: &Options) -> Duration {
    let idle = u64::try_from(peer.idle_timeout_ms).unwrap_or(0);
    let wanted = match idle {
        0 => options.heartbeat_every,
        idle => options.heartbeat_every.min(Duration::from_millis(idle) / HEARTBEATS_PER_TIMEOUT),
    };
    wanted.max(HEARTBEAT_EVERY_MIN)
}

/// Writes until the connection is dropped, which is no error.
async fn write(
    mut writer: impl AsyncWrite + Unpin,
    mut outgoing: mpsc::Receiver<Bytes>,
    mut pings: mpsc::Receiver<Bytes>,
) -> io::Result<()> {
    loop {
        let message = tokio::select! {
            Some(message) = outgoing.recv() => message,
            Some(ping) = pings.recv() => ping,
            else => return Ok(()),
        };
        writer.write_all(&message).await?;
        writer.flush().await?;
    }
}

/// Reads until something ends the connection, and says what.
async fn read(
    mut reader: impl AsyncRead + Unpin,
    waiting: &Waiting,
    heart: &Heart,
    bytes_max: usize,
) -> Error {
    let mut buffer = BytesMut::with_capacity(READ_BYTES);
    let mut beats = interval_at(Instant::now() + heart.every, heart.every);
    // Since when a heartbeat has had no sign of life for an answer.
    let mut asked: Option<Instant> = None;
    loop {
        loop {
            match frame::next(&mut buffer, bytes_max) {
                Err(frame::TooLong { bytes, id }) => {
                    let error = Error::TooLarge { bytes, bytes_max };
                    id.inspect(|id| waiting.refuse(*id, error.clone()));
                    return waiting.lost(io::Error::new(ErrorKind::InvalidData, error));
                }
                Ok(None) => break,
                Ok(Some(message)) => match frame::answer(message) {
                    Ok(answer) => waiting.on_answer(answer),
                    Err(source) => return Error::Malformed(source),
                },
            }
        }
        buffer.reserve(READ_BYTES);
        let patience =
            asked.map_or(heart.timeout, |since| heart.timeout.saturating_sub(since.elapsed()));
        tokio::select! {
            count = reader.read_buf(&mut buffer) => match count {
                Ok(0) => return waiting.lost(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => asked = None,
                Err(source) => return waiting.lost(source),
            },
            _ = beats.tick(), if asked.is_none() => {
                if let Ok((id, _nobody)) = waiting.register() {
                    let message = frame::request(op::HEARTBEAT, id, &[]);
                    // A full line means that the writer is stuck, which the silence will tell.
                    drop(heart.ping.try_send(message));
                    asked = Some(Instant::now());
                }
            }
            () = tokio::time::sleep(patience), if asked.is_some() => {
                return Error::Silent {
                    address: waiting.address().to_owned(),
                    waited: heart.timeout,
                };
            }
        }
    }
}
