//! Runs one command apart from the rest of the machine, and tells how it ended.
//!
//! A daemon opens a [`Host`] on its data directory and starts attempts. Each attempt has a process of
//! its own, the [`shim`], which outlives the daemon, holds the deadline and keeps the result; inside
//! the shim a [`Runtime`] runs the command. Output goes to [`log`] files that anybody may read.
//!
//! This crate writes files only below its data directory. It knows nothing of tasks, stores or the
//! network, and never decides whether something should run.

mod boottime;
pub mod cgroup;
mod deadline;
pub mod fake;
pub mod host;
mod lifecycle;
pub mod log;
pub mod native;
mod outcome;
mod places;
pub mod process;
mod record;
pub mod runtime;
pub mod shim;
mod spec;

pub use boottime::Boottime;
pub use deadline::{Deadline, DeadlineView};
pub use host::{Attempt, Event, Host, Leftovers, Options, Order, Stopper};
pub use outcome::{Ended, Exit, Outcome, Usage};
pub use runtime::{Kind, Runtime, Site};
pub use spec::{AttemptId, Limits, Medium, Network, Root, Spec, User};
