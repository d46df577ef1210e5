//! Which grid, and which tables in it.

use crate::TlsFiles;

/// The schema that the tables are in unless somebody names another.
const SCHEMA: &str = "WINDLASS";
/// One Raft group orders every batch; more only add commits across groups.
const PARTITIONS: u16 = 1;
/// The least that survives the loss of a node.
pub(crate) const REPLICAS_MIN: u16 = 3;

#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    pub client: ignite_client::Options,
    /// `HOST:PORT` of the REST interface of nodes, the only one that tells their settings; behind
    /// `https://` where it speaks TLS.
    pub rest: Vec<String>,
    /// Present if the nodes speak TLS to clients.
    pub tls: Option<TlsFiles>,
    /// Schema and zone of the tables: letters, digits and `_`, written in capitals.
    pub schema: String,
    /// Only for [`init`](crate::init).
    pub partitions: u16,
    pub replicas: u16,
    /// Opens a journal whose settings could lose acknowledged writes; each is then logged.
    pub is_unsafe_allowed: bool,
}

// === impl Options ===

impl Options {
    #[must_use]
    pub fn new(client: ignite_client::Options, rest: Vec<String>) -> Self {
        Self {
            client,
            rest,
            tls: None,
            schema: SCHEMA.to_owned(),
            partitions: PARTITIONS,
            replicas: REPLICAS_MIN,
            is_unsafe_allowed: false,
        }
    }
}
