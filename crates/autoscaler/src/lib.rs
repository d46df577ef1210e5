//! Makes node groups follow the pods. A core that decides, beside those in `registry` and `fit`,
//! and a shell that acts.
//!
//! | module | owns |
//! |---|---|
//! | [`options`], [`service`], [`lifecycle`] | what a process is told, is made of, and runs |
//! | [`provider`] | the way to the provider of machines, and what was read there |
//! | [`cluster`], `kubernetes` | Kubernetes as the loop needs it, and a real one |
//! | [`core`] | what decides: the iteration, scale-up, scale-down, drains |
//! | `driver` | the loop: looks, lets the core decide, acts; [`Stepped`] for who owns the clock |
//! | [`record`] | what the cores were given and came to, kept and run again |
//! | `keeper`, [`admin`] | the state that outlives the process, and what is read of it without one |
//! | `facts`, `pending`, `world` | from Kubernetes' objects to what is decided on |
//! | `view`, `metrics` | what people and dashboards are shown |
//! | [`manifests`] | the objects that it needs in a cluster |

pub mod admin;
pub mod cluster;
pub mod core;
mod driver;
mod facts;
mod keeper;
mod kubernetes;
pub mod lifecycle;
pub mod manifests;
mod metrics;
pub mod options;
mod pending;
pub mod provider;
pub mod record;
pub mod service;
mod view;
mod world;

pub use driver::{Clock, Leads, Parts, Stepped, TermError};
pub use options::Options;
pub use record::Recorder;
pub use service::{Service, StartError, Surroundings};
