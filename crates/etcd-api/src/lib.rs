//! etcd 3.7's wire types and error catalogue: what a client and a server of that API must agree
//! on, and nothing else. There is no logic here and no connection.
//!
//! | module | protobuf package |
//! |---|---|
//! | [`etcdserverpb`] | KV, Watch, Lease, Cluster, Maintenance, Auth |
//! | [`mvccpb`] | key-values and events, kept encoded |
//! | [`authpb`] | users, roles, permissions |
//! | [`v3lockpb`], [`v3electionpb`] | Lock, Election |
//! | [`health`] | `grpc.health.v1` |
//!
//! Every message has its protobuf form (`prost::Message`) and, but for [`health`], the JSON form of
//! etcd's gateway (`serde`): proto field names, 64-bit integers as strings, bytes in base64, enums by
//! name if they have one, defaults left out. Every service has a `…_server` and a `…_client` module.
//!
//! ```
//! use etcd_api::etcdserverpb::RangeResponse;
//! use etcd_api::mvccpb::{KeyValue, KeyValueParts};
//! use prost::Message;
//!
//! let kv = KeyValue::new(&KeyValueParts {
//!     key: b"a",
//!     create_revision: 2,
//!     mod_revision: 2,
//!     version: 1,
//!     value: b"x",
//!     lease: 0,
//! });
//! let response = RangeResponse { kvs: vec![kv], count: 1, ..Default::default() };
//!
//! let received = RangeResponse::decode(&response.encode_to_vec()[..])?;
//! assert_eq!(received.kvs[0].value(), b"x");
//! # Ok::<(), prost::DecodeError>(())
//! ```

pub mod error;
mod generated;
pub mod mvccpb;
mod open_enum;
pub mod version;

pub use error::{ApiError, CancelReason, Code};
pub use generated::{authpb, etcdserverpb, health, v3electionpb, v3lockpb};
