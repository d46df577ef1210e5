//! What went wrong with a request, each thing said once. kube's own errors repeat their causes, so
//! that a printed chain says everything twice.

use kube::core::Status;

/// Why a request did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The server said no; nothing was done.
    #[error("{}", .0.message)]
    Refused(Box<Status>),
    /// There was no answer. What was asked may have been done all the same.
    #[error("no answer from the API server")]
    Unanswered(#[source] tower::BoxError),
    /// The request could not be made, or its answer not be read.
    #[error("the conversation with the API server failed")]
    Broken(#[source] Box<kube::Error>),
}

// === impl Failure ===

impl Failure {
    /// The server's refusal, if it was one.
    #[must_use]
    pub fn refusal(&self) -> Option<&Status> {
        match self {
            Self::Refused(status) => Some(status),
            Self::Unanswered(_) | Self::Broken(_) => None,
        }
    }
}

impl From<kube::Error> for Failure {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::Refused(status),
            kube::Error::Service(source) => Self::Unanswered(source),
            kube::Error::HyperError(source) => Self::Unanswered(Box::new(source)),
            other => Self::Broken(Box::new(other)),
        }
    }
}
