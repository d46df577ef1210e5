//! Tasks for people.

use jiff::{SignedDuration, Timestamp};

use super::{Attempt, Described};
use crate::{config::size, report};

/// Longer commands are cut in a table; `status` shows them whole.
const COMMAND_CHARACTERS_MAX: usize = 40;
/// Enough of an id to name the task by.
const ID_CHARACTERS: usize = 13;

pub(in crate::commands) fn table(tasks: &[Described], now: Timestamp) -> String {
    let row = |task: &Described| {
        [
            task.id.chars().take(ID_CHARACTERS).collect(),
            task.name.clone(),
            task.state.word().to_owned(),
            task.state.detail(),
            task.state.node().unwrap_or("-").to_owned(),
            age(now.duration_since(task.submitted_at)),
            shortened(&task.command.join(" ")),
        ]
    };
    let header = ["ID", "NAME", "STATE", "DETAIL", "NODE", "AGE", "COMMAND"];
    report::table(header, tasks.iter().map(row))
}

pub(in crate::commands) fn text(task: &Described) -> String {
    let mut lines = vec![
        ("id", task.id.clone()),
        ("name", task.name.clone()),
        ("state", format!("{}, {}", task.state.word(), task.state.detail())),
        ("node", task.state.node().unwrap_or_default().to_owned()),
        ("command", task.command.join(" ")),
        ("submitted", format!("{} by {}", task.submitted_at, task.submitted_by)),
        ("labels", pairs(task)),
    ];
    if let super::State::Failed { message, .. } = &task.state {
        lines.push(("message", message.clone()));
    }
    if let Some(limits) = &task.limits {
        let cpus = size::show_cpus(limits.cpu_millis);
        let memory = size::show(limits.memory_bytes);
        let scratch = size::show(limits.scratch_bytes);
        let used = format!("{cpus} cpus, {memory} memory, {} pids, {scratch} scratch", limits.pids);
        lines.push(("limits", used));
    }
    let goes_on = if task.state.is_final() { "not known to have stopped" } else { "goes on" };
    let attempts = task.attempts.iter();
    lines.extend(attempts.map(|attempt| ("attempt", attempt_line(attempt, goes_on))));
    let shown = lines.into_iter().filter(|(_, value)| !value.is_empty());
    let lines: Vec<String> = shown.map(|(name, value)| format!("{name:<10} {value}")).collect();
    lines.join("\n")
}

fn attempt_line(attempt: &Attempt, goes_on: &str) -> String {
    let Attempt { number, node, start, fence, .. } = attempt;
    let end = match (attempt.cause, attempt.end) {
        (Some(cause), Some(end)) => format!("{cause} after {}", age(end.duration_since(*start))),
        _ => goes_on.to_owned(),
    };
    let memory = match attempt.peak_memory_bytes {
        0 => String::new(),
        bytes => format!(", {} memory at most", size::show(bytes)),
    };
    format!("{number} on {node} since {start}, {end}{memory}, fence {fence}")
}

fn pairs(task: &Described) -> String {
    let pairs: Vec<String> =
        task.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.join(" ")
}

pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(COMMAND_CHARACTERS_MAX) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// In the largest unit of which there is at least one.
pub(crate) fn age(duration: SignedDuration) -> String {
    let millis = duration.as_millis().max(0);
    match millis / 1000 {
        0 => format!("{millis}ms"),
        seconds @ 1..60 => format!("{seconds}s"),
        seconds @ 60..3600 => format!("{}m", seconds / 60),
        seconds @ 3600..86400 => format!("{}h", seconds / 3600),
        seconds => format!("{}d", seconds / 86400),
    }
}
