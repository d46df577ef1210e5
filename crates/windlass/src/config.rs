//! What is meant by what was typed: gathers the layers, checks each value, and builds the options
//! of the store. It reads nothing itself; arguments, environment and files are handed in.

mod access;
pub(crate) mod auth_token;
pub(crate) mod compaction;
pub(crate) mod duration;
mod error;
mod file;
pub(crate) mod journal;
pub(crate) mod layers;
pub(crate) mod node;
mod peers;
pub(crate) mod serve;
mod settings;
pub(crate) mod size;
pub(crate) mod suggest;
mod tls;
mod urls;
mod yaml;

pub(crate) use error::Error;
pub(crate) use settings::{Origin, Setting, Settings};
