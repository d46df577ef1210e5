//! Why an instance could not join.

use std::time::Duration;

use crate::core::instance::{JoinError, Loss};
use crate::core::lease::{DURATION_MAX, DURATION_MIN, WEIGHT_MAX};
use crate::core::names::NameError;
use crate::kubernetes;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("`{ring}` cannot be the name of a ring")]
    Ring {
        ring: String,
        #[source]
        source: NameError,
    },
    #[error("`{id}` cannot be the id of an instance")]
    Id {
        id: String,
        #[source]
        source: NameError,
    },
    #[error("a weight is at most {WEIGHT_MAX}, not {0}")]
    Weight(u32),
    #[error("a Lease lasts {DURATION_MIN:?} to {DURATION_MAX:?}, not {0:?}")]
    Duration(Duration),
    #[error("there is no ring `{0}`; apply it first")]
    NoRing(String),
    #[error("cannot read the ring `{ring}`")]
    ReadRing {
        ring: String,
        #[source]
        source: kubernetes::Error,
    },
    #[error("cannot tell the kinds of the ring `{ring}`")]
    Discover {
        ring: String,
        #[source]
        source: kubernetes::Error,
    },
    #[error("cannot read the StatefulSet that the instance is of")]
    StatefulSet(#[source] kubernetes::Error),
    #[error("the ring has no place for this instance")]
    Refused(#[source] JoinError),
    #[error("the instance could not keep its place in the ring")]
    Lost(#[source] Loss),
    #[error("the task that keeps the Lease has ended")]
    Abandoned,
}
