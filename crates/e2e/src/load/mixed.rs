//! A client that reads, writes, deletes and swaps on few keys, for the linearizability checker.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use etcd_api::etcdserverpb as pb;
use pb::compare::{CompareResult, CompareTarget, TargetUnion};
use pb::{request_op, response_op};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tonic::Status;

use super::Shared;
use super::translate::{bounds, is_unknown, pair};
use crate::check::history::{Answer, Interval, Operation, Outcome, Request, Response};
use crate::client::Client;
use crate::wait::Patience;

const KEYS: [&str; 4] = ["a", "b", "c", "d"];

/// How long a store may be away.
const BACK_WAIT: Duration = Duration::from_secs(90);

#[derive(Clone, Copy, Debug)]
pub struct MixedOptions {
    pub number: usize,
    pub seed: u64,
}

/// Calls until the run is over, and returns every call with what came of it.
pub async fn mixed(
    options: MixedOptions,
    client: Client,
    shared: Shared,
) -> Result<Vec<Operation>> {
    let mut rng = StdRng::seed_from_u64(options.seed ^ options.number as u64);
    let mut history: Vec<Operation> = Vec::new();
    let mut seen_revision = 0;
    while !shared.is_over() {
        let mut patience = Patience::new("the store to answer", BACK_WAIT);
        loop {
            let value = format!("{}-{}", options.number, history.len());
            let request = request(&mut rng, value, seen_revision);
            let called = shared.now();
            let outcome = call(&client, &request, &shared).await?;
            let response = outcome.response().cloned();
            history.push(Operation { client: options.number, called, request, outcome });
            match response {
                Some(response) => {
                    seen_revision = newest(&response).unwrap_or(seen_revision);
                    shared.on_answer();
                    break;
                }
                None if shared.is_over() => break,
                None => patience.wait("no answer").await?,
            }
        }
    }
    Ok(history)
}

/// A revision worth comparing with: of a key that was just seen.
fn newest(response: &Response) -> Option<i64> {
    match &response.answer {
        Answer::Range(pairs) => pairs.last().map(|pair| pair.mod_revision),
        Answer::NotSwapped(pair) => pair.as_ref().map(|pair| pair.mod_revision),
        Answer::Put | Answer::Swapped => Some(response.revision),
        Answer::Delete { .. } => Some(0),
    }
}

fn request(rng: &mut StdRng, value: String, seen_revision: i64) -> Request {
    let key = KEYS[rng.random_range(0..KEYS.len())].to_owned();
    let from_here = |start: String| Interval { start, end: Some("z".to_owned()) };
    match rng.random_range(0..10) {
        0..3 => Request::Put { key, value },
        3 => Request::Range(Interval::key(&key)),
        4..6 => Request::Range(from_here(key)),
        6 => Request::Delete(from_here(key)),
        _ => Request::Swap { key, expected: seen_revision, value },
    }
}

async fn call(client: &Client, request: &Request, shared: &Shared) -> Result<Outcome> {
    match send(client, request).await {
        Ok(response) => Ok(Outcome::Answered { at: shared.now(), response: response? }),
        Err(status) if is_unknown(status.code()) => Ok(Outcome::Unknown),
        Err(status) => bail!("{request:?} was refused: {status}"),
    }
}

async fn send(client: &Client, request: &Request) -> Result<Result<Response>, Status> {
    match request {
        Request::Put { key, value } => {
            let response = client.kv().put(put(key, value)).await?.into_inner();
            Ok(answer(response.header, Answer::Put))
        }
        Request::Range(interval) => {
            let (key, range_end) = bounds(interval);
            let request = pb::RangeRequest { key, range_end, ..Default::default() };
            let response = client.kv().range(request).await?.into_inner();
            Ok(answer(response.header, Answer::Range(response.kvs.iter().map(pair).collect())))
        }
        Request::Delete(interval) => {
            let (key, range_end) = bounds(interval);
            let request = pb::DeleteRangeRequest { key, range_end, prev_kv: false };
            let response = client.kv().delete_range(request).await?.into_inner();
            let deleted = usize::try_from(response.deleted).unwrap_or(usize::MAX);
            Ok(answer(response.header, Answer::Delete { deleted }))
        }
        Request::Swap { key, expected, value } => {
            let response = client.kv().txn(swap(key, *expected, value)).await?.into_inner();
            Ok(swapped(&response))
        }
    }
}

fn answer(header: Option<pb::ResponseHeader>, answer: Answer) -> Result<Response> {
    let revision = header.context("an answer has a header")?.revision;
    Ok(Response { revision, answer })
}

fn swapped(response: &pb::TxnResponse) -> Result<Response> {
    if response.succeeded {
        return answer(response.header, Answer::Swapped);
    }
    let inner = response.responses.first().and_then(|each| each.response.as_ref());
    match inner {
        Some(response_op::Response::ResponseRange(range)) => {
            answer(response.header, Answer::NotSwapped(range.kvs.first().map(pair)))
        }
        other => bail!("a failed swap reads the key, but was answered {other:?}"),
    }
}

fn put(key: &str, value: &str) -> pb::PutRequest {
    pb::PutRequest {
        key: key.to_owned().into(),
        value: value.to_owned().into(),
        ..Default::default()
    }
}

fn swap(key: &str, expected: i64, value: &str) -> pb::TxnRequest {
    let read = pb::RangeRequest { key: key.to_owned().into(), ..Default::default() };
    let operation = |request| vec![pb::RequestOp { request: Some(request) }];
    pb::TxnRequest {
        compare: vec![pb::Compare {
            result: CompareResult::Equal as i32,
            target: CompareTarget::Mod as i32,
            key: key.to_owned().into(),
            target_union: Some(TargetUnion::ModRevision(expected)),
            ..Default::default()
        }],
        success: operation(request_op::Request::RequestPut(put(key, value))),
        failure: operation(request_op::Request::RequestRange(read)),
    }
}
