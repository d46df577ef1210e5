//! Streamed answers as lines of JSON: `{"result":…}` for each message, `{"error":…}` at the end of
//! one that failed.

use bytes::Bytes;
use futures::stream::{self, Stream, StreamExt};
use http::Response;
use http::header::CONTENT_TYPE;
use http_body::Frame;
use http_body_util::StreamBody;
use serde::Serialize;
use tonic::body::Body;
use tonic::{Status, Streaming};

use super::{ANSWERED, ANSWERED_HEADER, Reply, refusal};
use crate::http::pages;

/// Answers from the first message on. Until there is one the status is open: a refusal still
/// decides it.
pub(super) async fn response<R: Reply>(
    answered: Result<tonic::Response<Streaming<R>>, Status>,
) -> Response<Body> {
    let begun = match answered {
        Ok(replies) => {
            let mut replies = replies.into_inner();
            replies.message().await.map(|first| first.map(|first| (first, replies)))
        }
        Err(refused) => Err(refused),
    };
    match begun {
        Err(refused) => refusal::stream_response(&refused),
        Ok(None) => Response::new(Body::empty()),
        Ok(Some((first, replies))) => {
            let lines = stream::once(std::future::ready(line(&first))).chain(rest(replies));
            let frames = lines.map(|line| Ok::<_, Status>(Frame::data(Bytes::from(line))));
            let mut response = Response::new(Body::new(StreamBody::new(frames)));
            response.headers_mut().insert(CONTENT_TYPE, pages::JSON);
            response.headers_mut().insert(ANSWERED_HEADER, ANSWERED);
            response
        }
    }
}

/// The lines after the first; the last one may tell why there are no more.
fn rest<R: Reply>(replies: Streaming<R>) -> impl Stream<Item = String> {
    stream::unfold(Some(replies), |replies| async move {
        let mut replies = replies?;
        match replies.message().await {
            Ok(Some(reply)) => Some((line(&reply), Some(replies))),
            Ok(None) => None,
            Err(failed) => Some((refusal::line(&failed), None)),
        }
    })
}

fn line(reply: &impl Serialize) -> String {
    match serde_json::to_string(reply) {
        Ok(reply) => format!("{{\"result\":{reply}}}\n"),
        Err(error) => refusal::line(&Status::internal(error.to_string())),
    }
}
