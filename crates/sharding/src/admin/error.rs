//! Why a question has no answer.

use crate::core::partition::slots::SlotsError;
use crate::core::simulate::ChangeError;
use crate::kubernetes::{self, Unreadable};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Kubernetes(#[from] kubernetes::Error),
    #[error("the cluster does not know Rings")]
    NotInstalled {
        #[source]
        source: kubernetes::Error,
    },
    #[error("there is no Ring `{ring}`")]
    NoRing { ring: String },
    #[error("Ring `{ring}` cannot be read")]
    Ring {
        ring: String,
        #[source]
        source: Unreadable,
    },
    #[error("the table of Ring `{ring}` cannot be read")]
    Table {
        ring: String,
        #[source]
        source: SlotsError,
    },
    #[error("Ring `{ring}` has no table yet")]
    NoTable { ring: String },
    #[error("the change cannot be")]
    Change(#[source] ChangeError),
    #[error("no Ring has the kind `{kind}`{}", known(rings))]
    NoKind { kind: String, rings: Vec<String> },
    #[error("`{kind}` is more than one kind: {}", kinds.join(", "))]
    Ambiguous { kind: String, kinds: Vec<String> },
    #[error("there is no {object}")]
    NoObject { object: String },
}

fn known(kinds: &[String]) -> String {
    match kinds {
        [] => String::new(),
        kinds => format!("; they have {}", kinds.join(", ")),
    }
}
