//! What a person sees of a task that is attended: its output, and on a terminal one line below it that
//! says where the task is. Owns that line; nothing else of the screen.

use std::io::{self, IsTerminal, Write};

use tasks::{core::id::TaskId, wire};

use super::super::task::{
    describe::{Explained, State},
    logs,
};
use crate::report::Failure;

/// Back to the margin, and everything behind it gone.
const CLEAR: &str = "\r\x1b[2K";
/// Of an id: enough to name the task by.
const ID_CHARACTERS: usize = 8;

/// See the module.
pub(super) struct Screen {
    id: String,
    is_terminal: bool,
    /// The line as it is shown now.
    shown: Option<String>,
}

// === impl Screen ===

impl Screen {
    pub(super) fn new(id: TaskId) -> Self {
        let id = id.to_string().chars().take(ID_CHARACTERS).collect();
        Self { id, is_terminal: io::stderr().is_terminal(), shown: None }
    }

    /// Whether anybody sees a line of progress.
    pub(super) fn shows_progress(&self) -> bool {
        self.is_terminal
    }

    /// `false`: nobody reads the output any more.
    pub(super) fn on_output(&mut self, chunk: &wire::LogsResponse) -> Result<bool, Failure> {
        self.clear();
        logs::pass_on(chunk)
    }

    pub(super) fn on_state(&mut self, state: &State, explained: Option<&Explained>) {
        let line = line(state, explained);
        self.show(line.map(|line| format!("task {}: {line}", self.id)));
    }

    pub(super) fn show(&mut self, line: Option<String>) {
        if !self.is_terminal || self.shown == line {
            return;
        }
        self.clear();
        if let Some(line) = &line {
            write(line);
        }
        self.shown = line;
    }

    pub(super) fn clear(&mut self) {
        if self.shown.take().is_some() {
            write(CLEAR);
        }
    }
}

/// Nothing is said of a task that has ended: how it ended is said elsewhere.
fn line(state: &State, explained: Option<&Explained>) -> Option<String> {
    match state {
        State::Queued { reason, .. } => {
            let why = explained.map(why).filter(|why| !why.is_empty());
            Some(why.map_or_else(|| format!("queued ({reason})"), |why| format!("queued: {why}")))
        }
        State::Running { node, attempt, .. } => {
            let node = node.as_deref().unwrap_or("a node");
            Some(format!("running on {node}, attempt {attempt}"))
        }
        State::Complete { .. } | State::Canceled { .. } | State::Failed { .. } => None,
    }
}

/// The first obstacle of the first node that has one; all of them are in `task explain`.
fn why(explained: &Explained) -> String {
    if explained.nodes.is_empty() {
        return "there is no node".to_owned();
    }
    let obstacle = explained.nodes.iter().find_map(|node| Some((node, node.obstacles.first()?)));
    let obstacle = obstacle.map(|(node, first)| format!("{}: {first}", node.node));
    match (explained.unsatisfiable, obstacle) {
        (true, Some(obstacle)) => format!("no node can ever run it; {obstacle}"),
        (_, obstacle) => obstacle.unwrap_or_default(),
    }
}

/// A terminal that is gone needs no line.
fn write(text: &str) {
    let mut terminal = io::stderr().lock();
    drop(write!(terminal, "{text}").and_then(|()| terminal.flush()));
}

#[cfg(test)]
mod tests {
    use tasks::wire::explain_response::Node;

    use super::*;

    fn explained(unsatisfiable: bool, obstacles: &[&str]) -> Explained {
        let obstacles = obstacles.iter().map(|text| (*text).to_owned()).collect();
        let node = Node { name: "node1".to_owned(), obstacles, ..Default::default() };
        let nodes = vec![node];
        Explained::of(&wire::ExplainResponse { nodes, unsatisfiable, not_before_ms: 0 })
    }

    #[test]
    fn the_line_says_where_the_task_is_and_why() {
        let queued = State::Queued { not_before: None, reason: "submitted" };
        let told = |explained: Option<&Explained>| line(&queued, explained).unwrap();
        assert_eq!(told(None), "queued (submitted)");
        assert_eq!(told(Some(&explained(false, &[]))), "queued (submitted)");
        assert_eq!(told(Some(&explained(false, &["is full"]))), "queued: node1: is full");
        assert_eq!(
            told(Some(&explained(true, &["is small"]))),
            "queued: no node can ever run it; node1: is small"
        );
        let none = Explained::of(&wire::ExplainResponse::default());
        assert_eq!(told(Some(&none)), "queued: there is no node");
        let running = State::Running {
            node: Some("node1".to_owned()),
            node_id: String::new(),
            attempt: 2,
            since: jiff::Timestamp::UNIX_EPOCH,
        };
        assert_eq!(line(&running, None).unwrap(), "running on node1, attempt 2");
    }
}
