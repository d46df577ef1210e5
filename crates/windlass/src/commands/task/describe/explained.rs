//! Why a task waits, what fsck found, what gc removed: the other answers about tasks.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use tasks::wire::{self, explain_response, fsck_response};

use super::{backoff_end, status::State, table::age};
use crate::{config::size, report};

#[derive(Clone, Debug, Serialize)]
pub(in crate::commands) struct Explained {
    pub(in crate::commands) unsatisfiable: bool,
    not_before: Option<Timestamp>,
    pub(in crate::commands) nodes: Vec<Opinion>,
}

/// Where a task is, and why it waits if it does.
#[derive(Clone, Debug, Serialize)]
pub(in crate::commands) struct Why {
    pub(in crate::commands) task: State,
    #[serde(flatten)]
    pub(in crate::commands) explained: Explained,
}

/// What one node thinks of a task.
#[derive(Clone, Debug, Serialize)]
pub(in crate::commands) struct Opinion {
    pub(in crate::commands) node: String,
    node_id: String,
    /// Empty: it fits now.
    pub(in crate::commands) obstacles: Vec<String>,
    rank: Option<u32>,
    free_cpu_millis: u64,
    free_memory_bytes: u64,
    free_age_ms: u64,
}

#[derive(Clone, Debug, Serialize)]
pub(in crate::commands) struct Finding {
    key: String,
    problem: String,
    pub(in crate::commands) repaired: bool,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(in crate::commands) struct Removed {
    pub(in crate::commands) deleted: u64,
}

pub(in crate::commands) fn explanation_text(why: &Why) -> String {
    let (state, explained) = (&why.task, &why.explained);
    if !matches!(state, State::Queued { .. }) {
        let at = state.node().map(|node| format!(" on {node}")).unwrap_or_default();
        return format!("{}{at}, {}: it waits for no node", state.word(), state.detail());
    }
    let row = |node: &Opinion| {
        let verdict = match node.obstacles.as_slice() {
            [] => "fits".to_owned(),
            obstacles => obstacles.join("; "),
        };
        let age_ms = i64::try_from(node.free_age_ms).unwrap_or(i64::MAX);
        [
            node.node.clone(),
            node.rank.map_or_else(|| "-".to_owned(), |rank| rank.to_string()),
            size::show_cpus(node.free_cpu_millis),
            size::show(node.free_memory_bytes),
            age(SignedDuration::from_millis(age_ms)),
            verdict,
        ]
    };
    let header = ["NODE", "RANK", "FREE CPUS", "FREE MEMORY", "KNOWN FOR", "VERDICT"];
    let table = report::table(header, explained.nodes.iter().map(row));
    let not_before = explained.not_before.map(|at| format!("\nnot before {at}"));
    let verdict = match explained.unsatisfiable {
        true => "\nUNSATISFIABLE: no live node could run it, however empty; it stays queued",
        false => "",
    };
    format!("{table}{}{verdict}", not_before.unwrap_or_default())
}

pub(in crate::commands) fn findings_text(findings: &[Finding]) -> String {
    if findings.is_empty() {
        return "everything holds".to_owned();
    }
    let row = |finding: &Finding| {
        let repaired = if finding.repaired { "yes" } else { "no" };
        [finding.key.clone(), finding.problem.clone(), repaired.to_owned()]
    };
    report::table(["KEY", "PROBLEM", "REPAIRED"], findings.iter().map(row))
}

// === impl Explained ===

impl Explained {
    pub(in crate::commands) fn of(explanation: &wire::ExplainResponse) -> Self {
        Self {
            unsatisfiable: explanation.unsatisfiable,
            not_before: backoff_end(explanation.not_before_ms),
            nodes: explanation.nodes.iter().map(Opinion::of).collect(),
        }
    }
}

// === impl Opinion ===

impl Opinion {
    fn of(node: &explain_response::Node) -> Self {
        let free = node.free.unwrap_or_default();
        Self {
            node: node.name.clone(),
            node_id: node.node_id.clone(),
            obstacles: node.obstacles.clone(),
            rank: node.rank,
            free_cpu_millis: free.cpu_millis,
            free_memory_bytes: free.memory_bytes,
            free_age_ms: node.free_age_ms,
        }
    }
}

// === impl Finding ===

impl Finding {
    pub(in crate::commands) fn of(finding: fsck_response::Finding) -> Self {
        let fsck_response::Finding { key, problem, repaired } = finding;
        Self { key, problem, repaired }
    }
}
