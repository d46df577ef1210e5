//! The first message of each side.

use bytes::Bytes;
use uuid::Uuid;

use super::{DecodeError, frame, pack::Packer, unpack::Unpacker};
use crate::error::ServerError;

const PROTOCOL: [i64; 3] = [3, 0, 0];
/// Neither JDBC nor ODBC.
const CLIENT_GENERAL: i64 = 2;

/// What a server says of itself and of its cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Peer {
    pub node_id: Uuid,
    pub node_name: String,
    /// The newest id of the cluster; repairs give it a new one.
    pub cluster_id: Uuid,
    pub cluster_name: String,
    /// Of the product, for instance `3.1.0`.
    pub version: String,
    /// After how much silence the server hangs up, in milliseconds; 0 for never.
    pub(crate) idle_timeout_ms: i64,
    pub(crate) observable: i64,
}

/// Who connects.
#[derive(Clone)]
pub(crate) struct Credentials<'a> {
    pub(crate) user: &'a str,
    pub(crate) password: &'a str,
}

/// The letters, and the frame that opens a connection. The mask of features is empty: with it
/// requests have one layout, and the server maps transactions to partitions.
pub(crate) fn request(credentials: Option<Credentials<'_>>) -> Bytes {
    let mut packer = Packer::new();
    for part in PROTOCOL {
        packer.int(part);
    }
    packer.int(CLIENT_GENERAL).binary(&[]);
    match credentials {
        None => packer.int(0),
        Some(Credentials { user, password }) => packer
            .int(3)
            .string("authn-type")
            .string("basic")
            .string("authn-identity")
            .string(user)
            .string("authn-secret")
            .string(password),
    };
    let mut out = frame::MAGIC.to_vec();
    out.extend_from_slice(&frame::framed(&packer.finish()));
    out.into()
}

pub(crate) fn response(message: Bytes) -> Result<Result<Peer, ServerError>, DecodeError> {
    let mut unpacker = Unpacker::new(message);
    for _ in PROTOCOL {
        unpacker.int("the version of the protocol")?;
    }
    if !unpacker.is_nil() {
        return frame::server_error(&mut unpacker).map(Err);
    }
    let idle_timeout_ms = unpacker.long("the idle timeout")?;
    let node_id = unpacker.uuid("the id of the node")?;
    let node_name = unpacker.string("the name of the node")?;
    let mut cluster_id = Uuid::nil();
    for _ in 0..unpacker.count("ids of the cluster")? {
        cluster_id = unpacker.uuid("an id of the cluster")?;
    }
    let cluster_name = unpacker.string("the name of the cluster")?;
    let observable = unpacker.long("the observable time")?;
    let version = version(&mut unpacker)?;
    Ok(Ok(Peer {
        node_id,
        node_name,
        cluster_id,
        cluster_name,
        version,
        idle_timeout_ms,
        observable,
    }))
}

fn version(unpacker: &mut Unpacker) -> Result<String, DecodeError> {
    let mut part = || unpacker.int("the version of the product");
    let mut version = format!("{}.{}.{}", part()?, part()?, part()?);
    if !unpacker.is_nil() {
        version += &format!(".{}", unpacker.int("the patch of the product")?);
    }
    if let Some(pre_release) = unpacker.string_or_nil("the pre-release of the product")? {
        version += &format!("-{pre_release}");
    }
    Ok(version)
}
