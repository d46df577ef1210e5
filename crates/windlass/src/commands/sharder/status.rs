//! `windlass sharder status`.

use jiff::Timestamp;
use sharding::admin::status::{Answer, Lead, Member, Moves, Status, Told};

use super::connect;
use crate::{
    cli::sharder::StatusArgs,
    commands::kube::{age, print},
    lifecycle,
    report::Outcome,
};

pub(super) async fn run(arguments: StatusArgs) -> Outcome {
    let admin = connect::admin(&arguments.cluster).await?;
    let answer = admin.status(arguments.ring.as_deref()).await.map_err(connect::failure)?;
    print::answer(&answer, arguments.output, |answer| text(answer, lifecycle::timestamp()))
}

fn text(answer: &Answer, now: Timestamp) -> String {
    let mut parts = vec![format!("sharder     {}", lead(answer.sharder.as_ref(), now))];
    if answer.rings.is_empty() {
        parts.push("no rings".to_owned());
    }
    parts.extend(answer.rings.iter().map(|status| ring(status, now)));
    parts.join("\n\n")
}

fn lead(lead: Option<&Lead>, now: Timestamp) -> String {
    match lead {
        None => "none has led here yet".to_owned(),
        Some(Lead { holder: None, .. }) => "nobody leads".to_owned(),
        Some(Lead { holder: Some(holder), renewed }) => {
            format!("{holder} leads, renewed {} ago", ago(*renewed, now))
        }
    }
}

fn ring(status: &Status, now: Timestamp) -> String {
    let deleted = if status.is_deleted { " (being deleted)" } else { "" };
    let mut lines = vec![format!("ring        {}{deleted}", status.ring)];
    lines.extend(status.conditions.iter().map(|it| condition(it, now)));
    let imbalance = status.imbalance.map(|imbalance| format!("{imbalance:.2}"));
    lines.push(format!("max/mean    {}", or_dash(imbalance)));
    lines.push(format!(
        "table       {}",
        or_dash(status.table_epoch.map(|it| format!("epoch {it}")))
    ));
    lines.push(format!("moves       {}", moves(&status.moves, now)));
    lines.extend(status.problems.iter().map(|problem| format!("problem     {problem}")));
    let header = ["INSTANCE", "NAMESPACE", "STATE", "FOR", "RENEWED", "WEIGHT", "SLOTS", "OBJECTS"];
    let members = match status.members.as_slice() {
        [] => "no instances".to_owned(),
        members => print::table(header, members.iter().map(|it| member(it, now))),
    };
    format!("{}\n\n{members}", lines.join("\n"))
}

/// Its message only where something is wrong.
fn condition(told: &Told, now: Timestamp) -> String {
    let Told { kind, status, reason, message, since } = told;
    let is_wrong = (kind == "Degraded") == (status == "True");
    let message =
        if is_wrong && !message.is_empty() { format!(": {message}") } else { String::new() };
    format!("{:<12}{status} for {}, {reason}{message}", kind.to_lowercase(), ago(Some(*since), now))
}

fn moves(moves: &Moves, now: Timestamp) -> String {
    let Moves { moving, draining, oldest_deadline } = moves;
    let deadline = oldest_deadline.map_or_else(String::new, |at| match at.duration_since(now) {
        left if left.is_negative() => format!(", the oldest overdue for {}", age(-left)),
        left => format!(", the oldest has {} left", age(left)),
    });
    format!("{moving} objects on their way, {draining} to be given up{deadline}")
}

fn member(member: &Member, now: Timestamp) -> [String; 8] {
    [
        member.id.to_string(),
        or_dash(member.namespace.clone()),
        member.state.clone(),
        ago(member.since, now),
        ago(member.renewed, now),
        member.weight.to_string(),
        member.slots.to_string(),
        or_dash(member.objects.map(|objects| objects.to_string())),
    ]
}

fn ago(at: Option<Timestamp>, now: Timestamp) -> String {
    or_dash(at.map(|at| age(now.duration_since(at))))
}

fn or_dash(value: Option<String>) -> String {
    value.unwrap_or_else(|| "-".to_owned())
}
