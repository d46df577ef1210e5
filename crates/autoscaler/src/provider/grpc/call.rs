//! How one call is made: within which time, how often, and what its end means. The only place that
//! judges a gRPC status.

use std::collections::BTreeSet;
use std::error::Error as _;
use std::time::Duration;

use parking_lot::Mutex;
use registry::GroupId;
use tokio::time::{Instant, sleep, timeout};
use tonic::{Code, Request, Response, Status};

use super::Client;
use crate::provider::config::Timeouts;
use crate::provider::{Error, Method};

/// A read that ended early is asked again twice.
const READ_ATTEMPTS: usize = 3;

/// Long enough for a connection to be made anew, short enough not to be felt in an iteration.
const READ_PAUSE: Duration = Duration::from_millis(100);

/// What is asked, and about which group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    pub(super) method: Method,
    group: Option<&'a GroupId>,
}

/// Makes calls, and remembers which are in vain.
#[derive(Debug)]
pub(super) struct Caller {
    client: Client,
    timeouts: Timeouts,
    /// As many entries as there are methods and groups.
    unsupported: Mutex<BTreeSet<(Option<GroupId>, Method)>>,
}

#[derive(Debug, thiserror::Error)]
#[error("not within {} ms", .0.as_millis())]
struct Overdue(Duration);

// === impl Call ===

impl<'a> Call<'a> {
    pub(super) fn new(method: Method) -> Self {
        Self { method, group: None }
    }

    pub(super) fn of(method: Method, group: &'a GroupId) -> Self {
        Self { method, group: Some(group) }
    }

    fn key(self) -> (Option<GroupId>, Method) {
        (self.group.cloned(), self.method)
    }
}

// === impl Caller ===

impl Caller {
    pub(super) fn new(client: Client, timeouts: Timeouts) -> Self {
        Self { client, timeouts, unsupported: Mutex::default() }
    }

    pub(super) fn unsupported(&self, group: &GroupId) -> Vec<Method> {
        let all = self.unsupported.lock();
        let own = all.iter().filter(|(of, _)| of.as_ref() == Some(group));
        own.map(|(_, method)| *method).collect()
    }

    /// Asks until there is an answer, a few times at most. Who was silent for the whole time is not
    /// asked again: others wait meanwhile.
    pub(super) async fn read<Q, A, Answer>(
        &self,
        call: Call<'_>,
        message: Q,
        ask: impl Fn(Client, Request<Q>) -> Answer + Send + Sync,
    ) -> Result<A, Error>
    where
        Q: Clone + Send,
        A: Send,
        Answer: Future<Output = Result<Response<A>, Status>> + Send,
    {
        let mut attempt = 1;
        loop {
            let began = Instant::now();
            let ended = self.once(call, message.clone(), self.timeouts.read, &ask).await;
            let is_spent = began.elapsed() >= self.timeouts.read;
            match ended {
                Err(error) if attempt < READ_ATTEMPTS && !is_spent && !error.is_unsupported() => {
                    tell_again(attempt, &error);
                    attempt += 1;
                    sleep(READ_PAUSE).await;
                }
                ended => return ended,
            }
        }
    }

    /// Asks once, whatever comes of it.
    pub(super) async fn mutate<Q, A, Answer>(
        &self,
        call: Call<'_>,
        message: Q,
        ask: impl FnOnce(Client, Request<Q>) -> Answer + Send,
    ) -> Result<(), Error>
    where
        Q: Send,
        A: Send,
        Answer: Future<Output = Result<Response<A>, Status>> + Send,
    {
        self.once(call, message, self.timeouts.mutate, ask).await.map(drop)
    }

    async fn once<Q, A, Answer>(
        &self,
        call: Call<'_>,
        message: Q,
        within: Duration,
        ask: impl FnOnce(Client, Request<Q>) -> Answer + Send,
    ) -> Result<A, Error>
    where
        Answer: Future<Output = Result<Response<A>, Status>> + Send,
    {
        let method = call.method;
        if self.unsupported.lock().contains(&call.key()) {
            return Err(Error::Unsupported { method });
        }
        let mut request = Request::new(message);
        // Tells the provider when nobody waits any more; the wait here also covers the answer's body.
        request.set_timeout(within);
        let Ok(ended) = timeout(within, ask(self.client.clone(), request)).await else {
            return Err(Error::Unknown { method, source: Box::new(Overdue(within)) });
        };
        let ended = ended.map(Response::into_inner).map_err(|status| judge(method, status));
        if ended.as_ref().is_err_and(Error::is_unsupported) {
            self.unsupported.lock().insert(call.key());
        }
        ended
    }
}

fn tell_again(attempt: usize, error: &Error) {
    let error = error as &dyn std::error::Error;
    tracing::debug!(attempt, error, "asking the provider again");
}

/// What a call that ended without success means.
fn judge(method: Method, status: Status) -> Error {
    // Only a status made on this side has a cause: the connection broke, or was never made.
    let is_answer = status.source().is_none();
    match status.code() {
        Code::DeadlineExceeded | Code::Unavailable | Code::Cancelled => {
            Error::Unknown { method, source: Box::new(status) }
        }
        Code::Unimplemented if is_answer => Error::Unsupported { method },
        code if is_answer => Error::rejected(method, format_args!("{code:?}"), status.message()),
        _ => Error::Unknown { method, source: Box::new(status) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(status: Status) -> &'static str {
        match judge(Method::NodeGroupIncreaseSize, status) {
            Error::Unsupported { .. } => "unsupported",
            Error::Rejected { .. } => "rejected",
            Error::Unknown { .. } => "unknown",
            Error::Unreadable { .. } => "unreadable",
        }
    }

    #[test]
    fn codes_are_told_apart() {
        for (code, expected) in [
            (Code::Unimplemented, "unsupported"),
            (Code::DeadlineExceeded, "unknown"),
            (Code::Unavailable, "unknown"),
            (Code::Cancelled, "unknown"),
            (Code::Internal, "rejected"),
            (Code::Unknown, "rejected"),
            (Code::ResourceExhausted, "rejected"),
            (Code::InvalidArgument, "rejected"),
        ] {
            assert_eq!(judged(Status::new(code, "no")), expected, "{code:?}");
        }
    }

    #[test]
    fn what_this_side_says_of_a_broken_connection_is_no_answer() {
        for code in [Code::Unknown, Code::Internal, Code::Unimplemented] {
            let broken: Box<dyn std::error::Error + Send + Sync> = "connection reset".into();
            let mut status = Status::new(code, "transport error");
            status.set_source(broken.into());
            assert_eq!(judged(status), "unknown", "{code:?}");
        }
    }

    #[test]
    fn a_providers_words_are_cut() {
        let error = judge(Method::Refresh, Status::internal("x".repeat(1000)));
        assert!(error.to_string().len() < 600);
    }
}
