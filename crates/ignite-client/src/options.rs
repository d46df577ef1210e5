//! How to connect.

use std::{fmt, sync::Arc, time::Duration};

use rustls::{ClientConfig, pki_types::ServerName};

/// Long enough for a busy node, short enough that the next address gets its turn.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Above the 30 seconds after which the server itself ends a transaction.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(40);
const HEARTBEAT_EVERY: Duration = Duration::from_secs(5);
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(5);
/// The largest message in either direction. A row of 16 MiB fits, as do pages of many.
const MESSAGE_BYTES_MAX: usize = 256 << 20;

/// How to connect. Start from [`Options::new`] and change what has to differ.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// `HOST:PORT` of nodes, any of which will do. The first that answers is used; the others are
    /// tried when it is lost.
    pub addresses: Vec<String>,
    pub credentials: Option<Credentials>,
    pub tls: Option<Tls>,
    pub connect_timeout: Duration,
    pub request_timeout: Duration,
    /// How often a silent connection is asked whether it lives, and how long it has to answer.
    pub heartbeat_every: Duration,
    pub heartbeat_timeout: Duration,
    pub message_bytes_max: usize,
}

/// A user of the basic kind. Its `Debug` does not show the password.
#[derive(Clone)]
pub struct Credentials {
    pub user: String,
    pub password: String,
}

/// How servers prove who they are.
#[derive(Clone, Debug)]
pub struct Tls {
    pub config: Arc<ClientConfig>,
    /// The name in the servers' certificates.
    pub server_name: ServerName<'static>,
}

// === impl Options ===

impl Options {
    pub fn new<A: Into<String>>(addresses: impl IntoIterator<Item = A>) -> Self {
        Self {
            addresses: addresses.into_iter().map(Into::into).collect(),
            credentials: None,
            tls: None,
            connect_timeout: CONNECT_TIMEOUT,
            request_timeout: REQUEST_TIMEOUT,
            heartbeat_every: HEARTBEAT_EVERY,
            heartbeat_timeout: HEARTBEAT_TIMEOUT,
            message_bytes_max: MESSAGE_BYTES_MAX,
        }
    }
}

// === impl Credentials ===

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}
