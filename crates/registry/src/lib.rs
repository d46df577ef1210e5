//! The cluster state registry: explains every node and instance of a cluster, and decides on what is
//! late or broken.
//!
//! A core: synchronous, without I/O, clock or randomness. Whoever runs it reads nodes and groups into
//! [`Facts`], calls [`Registry::observe`], carries out the [`Decision`]s and records with
//! [`Registry::record`] what came of them. An intent is recorded and [saved](Registry::save) before its
//! call is made, so a crash delays a decision and never repeats or loses one. Equal inputs give equal
//! bytes, whatever order they come in.
//!
//! ```
//! use registry::{Action, Config, Facts, Group, Options, Outcome, Registry, Step};
//!
//! let now = "2026-03-01T08:00:00Z".parse()?;
//! let mut registry = Registry::new(Config::default());
//! let action = Action::Increase { group: "pool".into(), delta: 2, baseline: 0 };
//! registry.record(now, &Outcome { action, step: Step::Requested })?;
//!
//! let group = Group {
//!     id: "pool".into(),
//!     min: 0,
//!     max: 10,
//!     exists: true,
//!     options: Options::default(),
//!     target: Ok(2),
//!     instances: Ok(Vec::new()),
//! };
//! let observation = registry.observe(now, &Facts { nodes: Vec::new(), groups: Ok(vec![group]) });
//! assert!(observation.decisions.is_empty());
//! assert_eq!(registry.upcoming(&"pool".into(), now).count, 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod backoff;
mod class;
mod classify;
mod config;
mod decision;
mod explain;
mod facts;
mod failure;
mod health;
mod id;
pub mod names;
mod notice;
mod observe;
mod prospect;
mod readiness;
mod record;
mod registry;
mod request;
mod safety;
mod save;
mod sift;
mod state;
pub mod status;
mod terms;
mod time;
mod view;

pub use backoff::Backoff;
pub use class::{Class, Next};
pub use config::{BackoffTimes, Config, OPTION_MAX, Times, UnreadyScope};
pub use decision::{Decision, Observation, REMOVALS_PER_GROUP_MAX, Removal, RemovalReason};
pub use explain::Target;
pub use facts::{
    Condition, ConditionStatus, ErrorClass, ErrorInfo, Facts, Fault, Group, Instance,
    InstanceState, Membership, Node, Options, Taint, Targets,
};
pub use health::{ClusterHealth, Halt, ZoneHealth};
pub use id::{GroupId, InstanceId, NodeName};
pub use notice::{CODES_NAMED_MAX, Event, EventReason, Failure, FailureCode, Notices, Report};
pub use readiness::{Cause, Readiness};
pub use record::{Action, Outcome, RecordError, Step};
pub use registry::{AutoscaledSizes, Registry, Upcoming};
pub use request::{Request, Settling};
pub use safety::Refusal;
pub use save::{RestoreError, STATE_BYTES_MAX};
pub use state::{DELETION_TIMEOUT, SizeRecord};
pub use terms::{Counts, SizeRange, Terms};
pub use view::{InstanceView, Leave, NodeView};
