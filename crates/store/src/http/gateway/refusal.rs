//! How a gRPC status looks in HTTP: the status code, and the status as JSON.

use http::header::WWW_AUTHENTICATE;
use http::{HeaderValue, Response, StatusCode};
use serde::Serialize;
use tonic::body::Body;
use tonic::{Code, Status};

use crate::http::pages;

#[derive(Serialize)]
struct Refusal<'a> {
    code: i32,
    #[serde(skip_serializing_if = "str::is_empty")]
    message: &'a str,
}

/// The answer to a request that failed before any of its answer was sent.
pub(super) fn response(status: &Status) -> Response<Body> {
    let mut response = pages::json(http_status(status.code()), to_json(status).into());
    if status.code() == Code::Unauthenticated
        && let Ok(challenge) = HeaderValue::from_str(status.message())
    {
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    response
}

/// The line that ends a stream that failed.
pub(super) fn line(status: &Status) -> String {
    format!("{{\"error\":{}}}\n", to_json(status))
}

/// The answer to a stream that failed before its first message.
pub(super) fn stream_response(status: &Status) -> Response<Body> {
    pages::json(http_status(status.code()), line(status).into())
}

fn to_json(status: &Status) -> String {
    let refusal = Refusal { code: status.code() as i32, message: status.message() };
    serde_json::to_string(&refusal).expect("a number and a string have a JSON form")
}

fn http_status(code: Code) -> StatusCode {
    match code {
        Code::Ok => StatusCode::OK,
        Code::Cancelled => StatusCode::from_u16(499).expect("499 is a status code"),
        Code::InvalidArgument | Code::FailedPrecondition | Code::OutOfRange => {
            StatusCode::BAD_REQUEST
        }
        Code::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::AlreadyExists | Code::Aborted => StatusCode::CONFLICT,
        Code::PermissionDenied => StatusCode::FORBIDDEN,
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        Code::Unimplemented => StatusCode::NOT_IMPLEMENTED,
        Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::Unknown | Code::Internal | Code::DataLoss => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
