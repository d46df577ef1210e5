//! `windlass autoscaler status` and `explain`: asks the autoscaler that runs; without one, what is kept
//! in the cluster, and says so.

use autoscaler::{
    Options, admin,
    service::{EXPLAIN_PATH, STATUS_PATH},
};
use kubekit::client::Cluster;
use serde_json::Value;

use crate::{
    cli::{
        autoscaler::{ExplainArgs, ServerArgs, StatusArgs},
        kube::Output,
    },
    client::http::{self, Answer},
    commands::kube::{self, print},
    report::{self, Exit, Failure, Outcome},
};

pub(super) async fn status(arguments: StatusArgs) -> Outcome {
    let ServerArgs { server, .. } = &arguments.server;
    let answer = match http::get(server, STATUS_PATH).await {
        Ok(answer) => serde_json::from_str::<Value>(&answer.body)
            .map_err(|error| unreadable(server, error))?,
        Err(error) => {
            let (cluster, options) = instead(&arguments.server, &error).await?;
            let text = admin::saved_status(&cluster, &options).await.map_err(not_saved)?;
            serde_saphyr::from_str(&text).map_err(|error| unreadable(server, error))?
        }
    };
    match arguments.output {
        Output::Table => report::data(&table(&answer)),
        other => print::answer(&answer, other, table),
    }
}

pub(super) async fn explain(arguments: ExplainArgs) -> Outcome {
    let ExplainArgs { name, server: ServerArgs { server, .. } } = &arguments;
    let path = format!("{EXPLAIN_PATH}{}", escaped(name));
    match http::get(server, &path).await {
        Ok(Answer { code: 200, body }) => report::data(body.trim_end()),
        Ok(_) => Err(unknown(name)),
        Err(error) => {
            let (cluster, options) = instead(&arguments.server, &error).await?;
            let found = admin::saved_account(&cluster, &options, name).await.map_err(not_saved)?;
            let Some(found) = found else { return Err(unknown(name)) };
            print::answer(&found, Output::Yaml, |_| String::new())
        }
    }
}

/// Where to look instead, after a word that nobody runs.
async fn instead(
    arguments: &ServerArgs,
    error: &http::Error,
) -> Result<(Cluster, Options), Failure> {
    report::words(&format!("{error}; this is what is saved in the cluster"));
    let cluster = kube::open(&arguments.connect).await?;
    let options =
        Options { namespace: arguments.namespace.clone(), ..Options::new("asking".to_owned()) };
    Ok((cluster, options))
}

fn not_saved(error: admin::Error) -> Failure {
    let exit = match &error {
        admin::Error::Read { .. } => Exit::Unreachable,
        _ => Exit::No,
    };
    Failure::new(exit, error)
        .with_hint("name the autoscaler with --server, or its cluster with --kubeconfig")
}

fn unknown(name: &str) -> Failure {
    let error = anyhow::anyhow!("nothing is known of {name}");
    Failure::new(Exit::No, error).with_hint(
        "name a node, a group, an instance, or a pending pod as namespace/name, and ask the \
         replica that leads",
    )
}

fn unreadable(server: &str, error: impl Into<anyhow::Error>) -> Failure {
    let error = error.into().context(format!("the status of {server} cannot be read"));
    Failure::new(Exit::No, error).with_hint("is it an autoscaler of windlass?")
}

/// Ids of instances have colons and slashes.
fn escaped(name: &str) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~:/".contains(byte);
    let escape = |byte: u8| match is_plain(&byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    name.bytes().map(escape).collect()
}

/// `leading`, or `standby, replica-1 leads`.
fn words_of_standing(standing: &Value) -> String {
    let Some(standby) = standing.get("standby") else {
        return standing.as_str().unwrap_or_default().to_owned();
    };
    match standby["leader"].as_str() {
        Some(leader) => format!("standby, {leader} leads"),
        None => "standby, nobody leads".to_owned(),
    }
}

/// For people: the cluster, then a line for every group.
fn table(status: &Value) -> String {
    let text = |value: &Value| match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let cluster = &status["clusterWide"];
    let counts = &cluster["health"]["nodeCounts"];
    let mut lines = vec![format!("status      {}", text(&status["autoscalerStatus"]))];
    if let Some(standing) = status.get("standing") {
        lines.push(format!("standing    {}", words_of_standing(standing)));
    }
    let said = [("fault", "fault"), ("message", "halted")];
    for (key, topic) in said {
        if let Some(value) = status.get(key).filter(|value| !value.is_null()) {
            lines.push(format!("{topic:<12}{}", text(value)));
        }
    }
    lines.push(format!("health      {}", text(&cluster["health"]["status"])));
    let registered = &counts["registered"];
    lines.push(format!(
        "nodes       {} registered: {} ready, {} starting, {} unready, {} leaving; {} not registered",
        text(&registered["total"]),
        text(&registered["ready"]),
        text(&registered["notStarted"]),
        text(&registered["unready"]["total"]),
        text(&registered["beingDeleted"]),
        text(&counts["unregistered"]),
    ));
    lines.push(format!("scale-up    {}", text(&cluster["scaleUp"]["status"])));
    let down = &cluster["scaleDown"];
    lines.push(format!("scale-down  {}, {}", text(&down["status"]), text(&down["candidates"])));
    let groups = status["nodeGroups"].as_array().map(Vec::as_slice).unwrap_or_default();
    let header =
        ["GROUP", "HEALTH", "TARGET", "MIN", "MAX", "READY", "SCALE-UP", "BACKOFF", "CANDIDATES"];
    let row = |group: &Value| {
        let health = &group["health"];
        [
            text(&group["name"]),
            text(&health["status"]),
            text(&health["cloudProviderTarget"]),
            text(&health["minSize"]),
            text(&health["maxSize"]),
            text(&health["nodeCounts"]["registered"]["ready"]),
            text(&group["scaleUp"]["status"]),
            text(&group["scaleUp"]["backoffInfo"]["errorCode"]),
            text(&group["scaleDown"]["candidates"]),
        ]
    };
    let groups = match groups {
        [] => "no groups".to_owned(),
        groups => print::table(header, groups.iter().map(row)),
    };
    format!("{}\n\n{groups}", lines.join("\n"))
}
