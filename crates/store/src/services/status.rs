//! The one place where an error becomes a gRPC status.

use etcd_api::ApiError;
use tonic::{Code, Status};

use crate::Error;

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        let is_alarm = matches!(error, Error::Api(_));
        if error.api() == ApiError::Corrupt && !is_alarm {
            tracing::error!(error = &error as &dyn std::error::Error, "data could not be read");
        }
        of_api(error.api())
    }
}

/// An error that became known before any service was asked.
pub(crate) fn refusal(error: Error) -> Status {
    error.into()
}

pub(super) fn of_api(error: ApiError) -> Status {
    Status::new(Code::from_i32(error.code().number()), error.message())
}

/// For services that etcd serves through a client of its own: what reaches the caller has the text
/// of the refusal, but not its code.
pub(super) fn without_code(error: Error) -> Status {
    Status::unknown(Status::from(error).message())
}
