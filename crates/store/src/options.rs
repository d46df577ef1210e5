//! What a store is told when it starts: plain data, validated by whoever read it.

use std::{fmt, net::SocketAddr, path::PathBuf, time::Duration};

use rustls::CipherSuite;

use crate::http::MESSAGE_OVERHEAD_BYTES;

/// Everything that can be chosen about one store process.
#[derive(Clone, Debug)]
pub struct Options {
    /// The member's name as clients see it.
    pub name: String,
    /// Where clients are served: gRPC, JSON and HTTP together.
    pub client_listeners: Vec<Listener>,
    /// Where only HTTP (health, metrics, JSON) is served; empty if it shares the client listeners.
    pub http_listeners: Vec<Listener>,
    /// Where only metrics and health are served, beside the client listeners.
    pub metrics_listeners: Vec<Listener>,
    /// Who may ask over HTTP.
    pub http_access: HttpAccess,
    /// Whether the API is served as JSON too.
    pub serves_json: bool,
    /// What the member list tells clients to connect to.
    pub advertise_client_urls: Vec<String>,
    /// What the member list names as peer address, and where the other members reach this one.
    /// Nothing listens there with one member.
    pub advertise_peer_urls: Vec<String>,
    /// Where the other members are served, who are believed whom they act for. Not used with one
    /// member.
    pub peer_listeners: Vec<Listener>,
    /// How this member proves itself to the others; plain text if absent.
    pub peer_tls: Option<PeerTls>,
    pub limits: Limits,
    pub auto_compaction: AutoCompaction,
    /// How often a watch that asked for it hears of progress while idle.
    pub watch_progress_interval: Duration,
    pub auth_token: AuthToken,
    /// Work factor of password hashes.
    pub bcrypt_cost: u32,
    /// Bytes of key-values kept in memory for reading.
    pub cache_bytes: u64,
    /// What whoever asks for the status is told beside alarms.
    pub notices: Vec<String>,
}

/// One place to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    pub address: Address,
    /// Plain text if absent.
    pub tls: Option<Tls>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

// === impl Address ===

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

/// How a listener encrypts, and whom it lets in. Files are PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    pub cert_file: PathBuf,
    pub key_file: PathBuf,
    /// Client certificates are verified against this if present.
    pub trusted_ca_file: Option<PathBuf>,
    /// Whether a client must present a certificate.
    pub requires_client_cert: bool,
    /// Whether a certificate names its client even where it could have been left out. etcd's does
    /// not.
    pub names_voluntary_clients: bool,
    /// Whom a client certificate must name.
    pub admitted: Admitted,
    /// Certificates that are good no more; may be DER too. Read again when it changes.
    pub crl_file: Option<PathBuf>,
    pub versions: TlsVersions,
    /// What may be agreed on with TLS 1.2; every suite there is if empty. Those of TLS 1.3 are all
    /// sound, and cannot be chosen.
    pub tls12_suites: Vec<CipherSuite>,
}

/// How a member proves itself to another one. Files are PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerTls {
    pub cert_file: PathBuf,
    pub key_file: PathBuf,
    /// The other member's certificate is verified against this.
    pub trusted_ca_file: PathBuf,
}

/// Which holders of a valid client certificate are let in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Admitted {
    #[default]
    Everyone,
    /// Those with one of these common names.
    CommonNames(Vec<String>),
    /// Those whose certificate is valid for one of these host names or addresses.
    HostNames(Vec<String>),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsVersions {
    #[default]
    Tls12And13,
    OnlyTls12,
    OnlyTls13,
}

/// Who may ask over HTTP, where gRPC's clients are not concerned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpAccess {
    /// Origins whose pages a browser lets read answers; every one if empty.
    pub origins: Vec<String>,
    /// Names by which the store may be addressed in plain text; every one if empty. A page that
    /// made its own name resolve to the store (DNS rebinding) is not among them.
    pub hosts: Vec<String>,
    /// Whether pages of origins that are not named are refused. A browser sends what a page posts,
    /// whether it may read the answer or not.
    pub refuses_other_pages: bool,
}

/// Bounds on what clients may ask for.
#[derive(Clone, Debug)]
pub struct Limits {
    pub txn_ops_max: usize,
    pub request_bytes_max: usize,
    /// Bytes of data above which writes are refused; 0 means no bound.
    pub quota_bytes: u64,
    /// HTTP/2 streams per connection.
    pub concurrent_streams_max: u32,
}

/// When history is forgotten without being asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AutoCompaction {
    Off,
    /// Keep this much time.
    Periodic(Duration),
    /// Keep this many revisions.
    Revision(i64),
}

/// What a client gets for its password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthToken {
    /// Random tokens that end after this time without use.
    Simple { ttl: Duration },
    /// Signed tokens that every holder of the public key can check.
    Jwt(JwtOptions),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JwtOptions {
    /// As JWT names it: RS256, PS256, ES256, EdDSA, HS256, …
    pub sign_method: String,
    pub public_key_file: Option<PathBuf>,
    /// Without it tokens are checked but not issued.
    pub private_key_file: Option<PathBuf>,
    pub ttl: Duration,
}

// === impl Tls ===

impl Tls {
    /// Encrypts for everyone, with this certificate.
    #[must_use]
    pub fn new(cert_file: PathBuf, key_file: PathBuf) -> Self {
        Self {
            cert_file,
            key_file,
            trusted_ca_file: None,
            requires_client_cert: false,
            names_voluntary_clients: false,
            admitted: Admitted::default(),
            crl_file: None,
            versions: TlsVersions::default(),
            tls12_suites: Vec::new(),
        }
    }
}

// === impl Limits ===

impl Limits {
    /// Of one message on the wire: a request with what gRPC and headers add to it.
    pub(crate) fn message_bytes_max(&self) -> usize {
        self.request_bytes_max.saturating_add(MESSAGE_OVERHEAD_BYTES)
    }

    /// The quota as clients and dashboards are told of it. Without one it is negative, as in etcd: they
    /// divide by it, and a store that takes nothing of 0 bytes looks full.
    pub(crate) fn quota_told(&self) -> i64 {
        match self.quota_bytes {
            0 => -1,
            bytes => i64::try_from(bytes).unwrap_or(i64::MAX),
        }
    }
}

impl Default for Limits {
    /// etcd's defaults.
    fn default() -> Self {
        Self {
            txn_ops_max: 128,
            request_bytes_max: 1536 * 1024,
            quota_bytes: 2 * 1024 * 1024 * 1024,
            concurrent_streams_max: u32::MAX,
        }
    }
}
