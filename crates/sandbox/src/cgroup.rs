//! Control groups of attempts: where they lie, their limits, their end and what they used.
//!
//! Every attempt has one group, `/windlass/HOST_ID/UUID-ATTEMPT`, in each mounted hierarchy. A
//! [`Tree`] is all that belongs to one host id: it finds, kills and counts nothing outside, so two
//! nodes on one machine never touch each other's. On a hybrid machine the v1 hierarchies limit and
//! count, and the v2 tree is there for `cgroup.kill`.
//!
//! Nothing here starts a process or waits: what needs time is a level that the caller asks for again.

mod account;
mod alarm;
mod delegation;
mod file;
mod group;
mod layout;
mod limits;
mod tree;

pub use account::Account;
pub use alarm::OomAlarm;
pub use group::Group;
pub use layout::{Hierarchy, Layout};
pub use tree::Tree;

use std::{io, path::PathBuf};

/// What went wrong with a control group, and where.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {path}")]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot write {value:?} to {path}")]
    Write { path: PathBuf, value: String, source: io::Error },
    #[error("cannot create the control group {path}")]
    Create { path: PathBuf, source: io::Error },
    #[error("cannot remove the control group {path}")]
    Remove { path: PathBuf, source: io::Error },
    #[error("cannot list the control groups in {path}")]
    List { path: PathBuf, source: io::Error },
    #[error("{path} holds {text:?}, which is not what the kernel documents")]
    Unexpected { path: PathBuf, text: String },
    #[error("no control group hierarchy is mounted")]
    NotMounted,
    #[error("the control group controller `{controller}` is not available")]
    MissingController { controller: &'static str },
    #[error("cannot hear whether the control group is out of memory")]
    Alarm(#[source] io::Error),
    #[error("cannot signal process {pid} of the control group")]
    Signal { pid: i32, source: io::Error },
}
