//! What the core knows, in the words of the API.

use std::time::Duration;

use crate::core::explain::{Explanation, Opinion};
use crate::core::record::Record;
use crate::wire;
use crate::wire::explain_response::Node;

pub(super) fn task(record: &Record) -> wire::TaskView {
    wire::TaskView {
        task: Some(record.task.to_message()),
        create_revision: record.created.0,
        mod_revision: record.modified.0,
    }
}

pub(super) fn explanation(explanation: Explanation) -> wire::ExplainResponse {
    wire::ExplainResponse {
        nodes: explanation.nodes.into_iter().map(opinion).collect(),
        unsatisfiable: explanation.is_unsatisfiable,
        not_before_ms: explanation.not_before.map_or(0, jiff::Timestamp::as_millisecond),
    }
}

fn opinion(opinion: Opinion) -> Node {
    Node {
        node_id: opinion.node.to_string(),
        name: opinion.name,
        obstacles: opinion.obstacles.iter().map(ToString::to_string).collect(),
        rank: opinion.rank.map(|rank| u32::try_from(rank).unwrap_or(u32::MAX)),
        free: Some(opinion.free.into()),
        free_age_ms: millis(opinion.free_age),
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
