//! Owns the connections to a cluster and what is said over them; knows nothing of what rows mean.
#![doc = include_str!("../README.md")]

mod client;
mod connection;
mod error;
mod lifecycle;
mod options;
mod row;
mod schema;
mod sql;
mod table;
mod transaction;
mod value;
mod wire;

pub use client::Client;
pub use error::{Error, ErrorCode, ServerError};
pub use options::{Credentials, Options, Tls};
pub use row::{Columns, Row};
pub use sql::ResultSet;
pub use table::Table;
pub use transaction::{Mode, Transaction};
pub use value::{ColumnType, Date, Decimal, Period, Seconds, Time, Value};
pub use wire::{DecodeError, handshake::Peer};
