//! A client that only writes, each value once, whatever happens to the store.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use etcd_api::etcdserverpb::PutRequest;

use super::Shared;
use super::translate::is_unknown;
use crate::check::ledger::Write;
use crate::client::Client;
use crate::wait::Patience;

/// Keys of one writer; few, so that versions grow.
const KEYS: usize = 20;

/// How long a store may be away.
const BACK_WAIT: Duration = Duration::from_secs(90);

/// Writes until the run is over; every attempt is a write of its own.
pub async fn writer(number: usize, client: Client, shared: Shared) -> Result<Vec<Write>> {
    let mut writes: Vec<Write> = Vec::new();
    while !shared.is_over() {
        let mut patience = Patience::new("the store to take a write", BACK_WAIT);
        while let Err(reason) = attempt(number, &client, &mut writes).await? {
            if shared.is_over() {
                return Ok(writes);
            }
            patience.wait(&reason).await?;
        }
        shared.on_answer();
    }
    Ok(writes)
}

/// One more write, and why it is unknown whether it happened, if it is.
async fn attempt(
    number: usize,
    client: &Client,
    writes: &mut Vec<Write>,
) -> Result<Result<(), String>> {
    let count = writes.len();
    let key = format!("w{number:02}/{:02}", count % KEYS);
    let value = format!("{number}-{count}");
    let outcome = put(client, &key, &value).await?;
    writes.push(Write { key, value, acknowledged_at: outcome.clone().ok() });
    Ok(outcome.map(drop))
}

/// The revision of the write, or why it is unknown whether there was one.
async fn put(client: &Client, key: &str, value: &str) -> Result<Result<i64, String>> {
    let request = PutRequest {
        key: key.to_owned().into(),
        value: value.to_owned().into(),
        ..Default::default()
    };
    match client.kv().put(request).await {
        Ok(response) => {
            let header = response.into_inner().header.context("an answer has a header")?;
            Ok(Ok(header.revision))
        }
        Err(status) if is_unknown(status.code()) => Ok(Err(status.to_string())),
        Err(status) => bail!("a put was refused: {status}"),
    }
}
