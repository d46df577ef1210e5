//! `windlass store status`: how a running store is doing.

use comfy_table::{Table, presets};
use etcd_api::etcdserverpb::{
    StatusRequest, StatusResponse, maintenance_client::MaintenanceClient,
};

use crate::{
    cli::{Output, StatusArgs},
    client,
    report::{self, Exit, Failure, Outcome},
};

pub(crate) async fn run(arguments: &StatusArgs) -> Outcome {
    let session = client::open(&arguments.client).await?;
    let answer =
        MaintenanceClient::new(session.channel()).status(session.request(StatusRequest {})).await;
    let status = answer.map_err(|refusal| session.refused(refusal))?.into_inner();
    match arguments.output {
        Output::Table => report::data(&table(&arguments.client.endpoint, &status)),
        Output::Json => report::data(&json(&status)?),
    }
}

fn json(status: &StatusResponse) -> Result<String, Failure> {
    serde_json::to_string(status).map_err(|error| {
        let error = anyhow::Error::new(error).context("the answer cannot be written as JSON");
        Failure::new(Exit::No, error).with_hint("use `-o table`")
    })
}

fn table(endpoint: &str, status: &StatusResponse) -> String {
    let revision = status.header.as_ref().map_or(0, |header| header.revision);
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["ENDPOINT", "VERSION", "REVISION", "BYTES", "IN USE", "TERM", "ERRORS"]);
    table.add_row([
        endpoint.to_owned(),
        status.version.clone(),
        revision.to_string(),
        status.db_size.to_string(),
        status.db_size_in_use.to_string(),
        status.raft_term.to_string(),
        status.errors.join(", "),
    ]);
    table.trim_fmt()
}
