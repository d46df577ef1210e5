//! Connections as they come in, encrypted if they have to be.

use std::io;
use std::time::Duration;

use futures::{Stream, StreamExt, stream};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::server::TlsStream;

use super::tls::Handshake;
use crate::handle::Handle;

/// Handshakes under way at once: more than a cloud has autoscalers.
const HANDSHAKES_MAX: usize = 32;

/// How long to wait when no connection can be taken, as when there are too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

pub(super) fn plain(listener: TcpListener) -> impl Stream<Item = io::Result<TcpStream>> {
    stream::unfold(
        listener,
        |listener| async move { Some((Ok(accept(&listener).await), listener)) },
    )
}

/// Which certificate is shown is looked up for each of them.
pub(super) fn encrypted(
    listener: TcpListener,
    handshake: Handshake,
    handle: Handle,
) -> impl Stream<Item = io::Result<TlsStream<TcpStream>>> {
    let streams =
        stream::unfold(
            listener,
            |listener| async move { Some((accept(&listener).await, listener)) },
        );
    let handshakes = streams.map(move |stream| {
        let is_wrong = handle.with(|cloud, now| cloud.shows_wrong_certificate(now));
        let handshake = handshake.clone();
        async move { handshake.accept(stream, is_wrong).await }
    });
    handshakes.buffer_unordered(HANDSHAKES_MAX).filter_map(|shaken| async {
        match shaken {
            Ok(stream) => Some(Ok(stream)),
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "a client did not get through the handshake");
                None
            }
        }
    })
}

async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "a connection could not be taken");
            }
        }
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }
}
