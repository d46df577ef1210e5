//! `windlass labels list`, `show`, `diff` and `history`: nothing is written.

use jiff::Timestamp;
use labels::{
    admin::{
        diff::Diff,
        history::{Change, History},
        list::Entry,
        show::{Queued, Show},
    },
    core::{object::Labels, policy::Policy},
};

use super::{connect, settings};
use crate::{
    cli::labels::{DiffArgs, HistoryArgs, ListArgs, ShowArgs},
    commands::kube::{age, print},
    lifecycle,
    report::{Exit, Failure, Outcome},
};

pub(super) async fn list(arguments: ListArgs) -> Outcome {
    let admin = connect::admin(arguments.cluster, Policy::default()).await?;
    let entries = admin.list().await.map_err(connect::failure)?;
    print::answer(&entries, arguments.output, |entries| list_table(entries, lifecycle::timestamp()))
}

pub(super) async fn show(arguments: ShowArgs) -> Outcome {
    settings::node(&arguments.node)?;
    let policy = settings::policy(arguments.policy)?;
    let admin = connect::admin(arguments.cluster, policy).await?;
    let show = admin.show(&arguments.node).await.map_err(connect::failure)?;
    print::answer(&show, arguments.output, show_text)
}

pub(super) async fn diff(arguments: DiffArgs) -> Outcome {
    settings::node(&arguments.node)?;
    let from = settings::version(arguments.from.as_ref())?;
    let policy = settings::policy(arguments.policy)?;
    let admin = connect::admin(arguments.cluster, policy).await?;
    let diff = admin.diff(&arguments.node, from.as_ref()).await.map_err(connect::failure)?;
    print::answer(&diff, arguments.output, diff_table)?;
    if diff.is_empty() {
        return Ok(());
    }
    let Diff { node, rv, .. } = &diff;
    let error = anyhow::anyhow!("Node `{node}` differs from snapshot {rv}");
    let from = from.map_or_else(String::new, |rv| format!(" --from {rv}"));
    Err(Failure::new(Exit::No, error)
        .with_hint(format!("`windlass labels restore {node}{from}` makes it so")))
}

pub(super) async fn history(arguments: HistoryArgs) -> Outcome {
    settings::node(&arguments.node)?;
    let admin = connect::admin(arguments.cluster, Policy::default()).await?;
    let history = admin.history(&arguments.node).await.map_err(connect::failure)?;
    print::answer(&history, arguments.output, history_text)
}

fn list_table(entries: &[Entry], now: Timestamp) -> String {
    let header = ["NODE", "LIVE", "RESTORED", "LABELS", "AGE", "QUEUED", "QUARANTINED"];
    let row = |entry: &Entry| {
        let labels = match (&entry.problem, entry.labels) {
            (Some(_), _) => "unreadable".to_owned(),
            (None, labels) => or_dash(labels),
        };
        [
            entry.node.clone(),
            yes_or_no(entry.is_live),
            yes_or_no(entry.is_restored),
            labels,
            or_dash(entry.stored_at.map(|at| age(now.duration_since(at)))),
            entry.queued.to_string(),
            entry.quarantined.to_string(),
        ]
    };
    print::table(header, entries.iter().map(row))
}

pub(super) fn diff_table(diff: &Diff) -> String {
    if diff.keys.is_empty() {
        return format!("Node {} is as in snapshot {}", diff.node, diff.rv);
    }
    let rows = diff.keys.iter().map(|key| {
        [
            key.key.clone(),
            key.action.as_str().to_owned(),
            key.class.to_owned(),
            or_dash(key.live.as_ref()),
            or_dash(key.stored.as_ref()),
        ]
    });
    print::table(["KEY", "ACTION", "CLASS", "LIVE", "STORED"], rows)
}

fn history_text(history: &History) -> String {
    let mut text = String::new();
    for (index, entry) in history.snapshots.iter().enumerate() {
        let uid = or_dash(entry.uid.as_ref());
        let labels = entry.labels.len();
        let stored = match (index, history.stored_at) {
            (0, Some(at)) => format!(", stored {at}"),
            _ => String::new(),
        };
        text += &format!("snapshot {} of {uid}, {labels} labels{stored}\n", entry.rv);
        text.extend(entry.changes.iter().map(change_line));
    }
    text.trim_end().to_owned()
}

fn change_line(change: &Change) -> String {
    let Change { key, before, after } = change;
    match (before, after) {
        (None, Some(after)) => format!("  + {key}={after}\n"),
        (Some(before), None) => format!("  - {key}={before}\n"),
        (Some(before), Some(after)) => format!("  ~ {key}={after}  (was {before})\n"),
        (None, None) => String::new(),
    }
}

fn show_text(show: &Show) -> String {
    let mut lines = vec![("node", show.node.clone())];
    lines.push(("live", live_line(show)));
    lines.push(("record", record_line(show)));
    if let Some(record) = &show.record {
        let past: Vec<String> = record.past.iter().map(ToString::to_string).collect();
        lines.push(("past", or_dash(Some(past.join(" ")).filter(|past| !past.is_empty()))));
        lines.push(("stored", labels_line(&record.labels)));
    }
    let checkpoint = show.checkpoint.as_ref();
    let checkpoint = checkpoint.map(|it| format!("rv {}, {} labels", it.rv, it.labels));
    lines.push(("checkpoint", or_dash(checkpoint)));
    let queue: Vec<String> = show.queue.iter().map(queued).collect();
    lines.push(("queue", or_dash(Some(queue.join("; ")).filter(|queue| !queue.is_empty()))));
    lines.push(("next", format!("{}: {}", show.next.row, show.next.meaning)));
    lines.extend(show.problems.iter().map(|problem| ("problem", problem.clone())));
    let text: Vec<String> =
        lines.into_iter().map(|(name, value)| format!("{name:<12}{value}")).collect();
    text.join("\n")
}

fn live_line(show: &Show) -> String {
    let Some(live) = &show.live else { return "no".to_owned() };
    let marker = or_dash(live.marker.as_ref());
    let end = if live.is_terminating { ", being deleted" } else { "" };
    format!(
        "yes: uid {}, created {}, {} labels, marker {marker}{end}",
        live.uid,
        live.created,
        live.labels.len()
    )
}

fn record_line(show: &Show) -> String {
    let Some(record) = &show.record else { return "none".to_owned() };
    let mut line = format!("rv {} of uid {}", record.rv, or_dash(record.stored_uid.as_ref()));
    line += &record.stored_at.map_or_else(String::new, |at| format!(", stored {at}"));
    if let Some(uid) = &record.restored_uid {
        let rv = or_dash(record.restored_rv.as_ref());
        line += &format!(", snapshot {rv} given to {uid}");
        line += &record.restored_at.map_or_else(String::new, |at| format!(" at {at}"));
    }
    line
}

fn queued(queued: &Queued) -> String {
    let kind = queued.kind.unwrap_or("unreadable");
    let source = queued.source.map_or_else(String::new, |source| format!(" by {source}"));
    // Whoever has to look at it needs its name; it is too long to be shown of every one.
    let quarantined = queued.quarantined.as_ref();
    let quarantined = quarantined.map_or_else(String::new, |why| {
        format!(", quarantined: {why} (ConfigMap {})", queued.name)
    });
    format!("{} {kind}{source}{quarantined}", queued.rv)
}

fn labels_line(labels: &Labels) -> String {
    let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    or_dash(Some(labels.join(" ")).filter(|labels| !labels.is_empty()))
}

fn yes_or_no(is: bool) -> String {
    if is { "yes" } else { "no" }.to_owned()
}

fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}
