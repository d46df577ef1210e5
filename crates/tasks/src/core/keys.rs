//! The keys of the store and what they mean: one function writes them, one reads them, and reading is
//! strict. Says nothing about values.
//!
//! ```text
//! /task/UUID                          the task            /node/NODE_ID   a node, leased
//! /task/status/queued/UUID
//! /task/status/running/NODE_ID/UUID
//! /task/status/complete/EPOCH/UUID                        likewise canceled/ and failed/
//! ```
//!
//! UUIDs are lower case, so all tasks are one range, and status keys sort after it.

use std::fmt;

use bytes::Bytes;

use super::id::{NodeId, TaskId};
use super::time::Epoch;

const TASK: &str = "/task/";
const STATUS: &str = "/task/status/";
const NODE: &str = "/node/";
const QUEUED: &str = "queued";
const RUNNING: &str = "running";

/// A key that this module writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    Task(TaskId),
    Status(StatusKey),
    Node(NodeId),
}

/// The key that mirrors a task's status, so that tasks can be listed and watched by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StatusKey {
    Queued(TaskId),
    Running(NodeId, TaskId),
    Ended(End, Epoch, TaskId),
}

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    Complete,
    Canceled,
    Failed,
}

/// An interval of keys, its end excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRange {
    pub start: &'static [u8],
    pub end: &'static [u8],
}

/// Why a key is none of ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("{0:?} is neither below /task/ nor below /node/")]
    Foreign(String),
    #[error("{key:?} has no {what} where one belongs")]
    Malformed { key: String, what: &'static str },
}

// === impl KeyRange ===

impl KeyRange {
    /// Every task, and no status key.
    pub const TASKS: Self = Self { start: b"/task/0", end: b"/task/g" };
    pub const STATUSES: Self = Self { start: b"/task/status/", end: b"/task/status0" };
    pub const QUEUED: Self = Self { start: b"/task/status/queued/", end: b"/task/status/queued0" };
    pub const RUNNING: Self =
        Self { start: b"/task/status/running/", end: b"/task/status/running0" };
    pub const COMPLETE: Self =
        Self { start: b"/task/status/complete/", end: b"/task/status/complete0" };
    pub const CANCELED: Self =
        Self { start: b"/task/status/canceled/", end: b"/task/status/canceled0" };
    pub const FAILED: Self = Self { start: b"/task/status/failed/", end: b"/task/status/failed0" };
    /// Tasks and status keys.
    pub const TASKS_AND_STATUSES: Self = Self { start: b"/task/", end: b"/task0" };
    pub const NODES: Self = Self { start: b"/node/", end: b"/node0" };

    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.start <= key && key < self.end
    }
}

// === impl Key ===

impl Key {
    #[must_use]
    pub fn to_bytes(self) -> Bytes {
        Bytes::from(self.to_string())
    }

    pub fn parse(key: &[u8]) -> Result<Self, KeyError> {
        let lossy = || String::from_utf8_lossy(key).into_owned();
        let text = str::from_utf8(key).ok().ok_or_else(|| KeyError::Foreign(lossy()))?;
        let malformed = |what| KeyError::Malformed { key: text.to_owned(), what };
        if let Some(status) = text.strip_prefix(STATUS) {
            return StatusKey::parse_below(status).map(Self::Status).map_err(malformed);
        }
        if let Some(id) = text.strip_prefix(TASK) {
            return id.parse().map(Self::Task).or(Err(malformed("task id")));
        }
        if let Some(id) = text.strip_prefix(NODE) {
            return id.parse().map(Self::Node).or(Err(malformed("node id")));
        }
        Err(KeyError::Foreign(text.to_owned()))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Task(id) => write!(f, "{TASK}{id}"),
            Self::Status(status) => status.fmt(f),
            Self::Node(id) => write!(f, "{NODE}{id}"),
        }
    }
}

// === impl StatusKey ===

impl StatusKey {
    #[must_use]
    pub fn task(&self) -> TaskId {
        match self {
            Self::Queued(id) | Self::Running(_, id) | Self::Ended(_, _, id) => *id,
        }
    }

    #[must_use]
    pub fn to_bytes(self) -> Bytes {
        Key::Status(self).to_bytes()
    }

    /// On failure, what is missing.
    fn parse_below(text: &str) -> Result<Self, &'static str> {
        let (kind, rest) = text.split_once('/').ok_or("status")?;
        let task = |id: &str| id.parse::<TaskId>().or(Err("task id"));
        if kind == QUEUED {
            return Ok(Self::Queued(task(rest)?));
        }
        if kind == RUNNING {
            let (node, id) = rest.split_once('/').ok_or("task id")?;
            return Ok(Self::Running(node.parse().or(Err("node id"))?, task(id)?));
        }
        let end = End::ALL.into_iter().find(|end| end.as_str() == kind).ok_or("status")?;
        let (epoch, id) = rest.split_once('/').ok_or("task id")?;
        Ok(Self::Ended(end, parse_epoch(epoch).ok_or("epoch")?, task(id)?))
    }
}

impl fmt::Display for StatusKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Queued(id) => write!(f, "{STATUS}{QUEUED}/{id}"),
            Self::Running(node, id) => write!(f, "{STATUS}{RUNNING}/{node}/{id}"),
            Self::Ended(end, Epoch(epoch), id) => {
                write!(f, "{STATUS}{}/{epoch}/{id}", end.as_str())
            }
        }
    }
}

/// Digits without sign and leading zeros: one epoch has one spelling.
fn parse_epoch(text: &str) -> Option<Epoch> {
    let is_canonical = text == "0" || !text.starts_with(['0', '+']);
    is_canonical.then(|| text.parse().ok().map(Epoch)).flatten()
}

// === impl End ===

impl End {
    pub const ALL: [Self; 3] = [Self::Complete, Self::Canceled, Self::Failed];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Canceled => "canceled",
            Self::Failed => "failed",
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    const TASK_ID: &str = "0190a7e6-8c00-7d3e-8000-00000000002a";
    const NODE_ID: &str = "6f1c83a2-52d7-4e0e-9b5d-0c2f7a4190e6";

    /// Reads each line as a key, writes it again, and says what was found.
    fn check(lines: &str, expected: &Expect) {
        let read = |line: &str| match Key::parse(line.as_bytes()) {
            Ok(key) => {
                assert_eq!(key.to_string(), line, "a key is written as it was read");
                format!("{key:?}\n")
            }
            Err(error) => format!("{error}\n"),
        };
        let lines = lines.replace("$T", TASK_ID).replace("$N", NODE_ID);
        let found: String = lines.lines().map(|line| read(line.trim())).collect();
        expected.assert_eq(&found.replace(TASK_ID, "$T").replace(NODE_ID, "$N"));
    }

    #[test]
    fn task_id_parsing() {
        check(
            "/task/$T
            /task/status/queued/$T
            /task/status/running/$N/$T
            /task/status/complete/1700000000/$T
            /task/status/canceled/0/$T
            /task/status/failed/1/$T
            /node/$N",
            &expect![[r#"
                Task($T)
                Status(Queued($T))
                Status(Running($N, $T))
                Status(Ended(Complete, Epoch(1700000000), $T))
                Status(Ended(Canceled, Epoch(0), $T))
                Status(Ended(Failed, Epoch(1), $T))
                Node($N)
            "#]],
        );
        check(
            "task/$T
            /task/
            /task/$T/
            /task/queued/$T
            /task/status/$T
            /task/status/done/1/$T
            /task/status/queued/$T/x
            /task/status/running/$T
            /task/status/running/x/$T
            /task/status/failed/$T
            /task/status/failed/01/$T
            /task/status/failed/+1/$T
            /task/status/failed/-1/$T
            /task/status/failed/1/x
            /node/$N/x
            /nodes/$N",
            &expect![[r#"
                "task/$T" is neither below /task/ nor below /node/
                "/task/" has no task id where one belongs
                "/task/$T/" has no task id where one belongs
                "/task/queued/$T" has no task id where one belongs
                "/task/status/$T" has no status where one belongs
                "/task/status/done/1/$T" has no status where one belongs
                "/task/status/queued/$T/x" has no task id where one belongs
                "/task/status/running/$T" has no task id where one belongs
                "/task/status/running/x/$T" has no node id where one belongs
                "/task/status/failed/$T" has no task id where one belongs
                "/task/status/failed/01/$T" has no epoch where one belongs
                "/task/status/failed/+1/$T" has no epoch where one belongs
                "/task/status/failed/-1/$T" has no epoch where one belongs
                "/task/status/failed/1/x" has no task id where one belongs
                "/node/$N/x" has no node id where one belongs
                "/nodes/$N" is neither below /task/ nor below /node/
            "#]],
        );
    }

    #[test]
    fn ranges_hold_their_keys_and_no_others() {
        let (task, node) = (TASK_ID.parse().unwrap(), NODE_ID.parse().unwrap());
        let record = Key::Task(task).to_bytes();
        let running = StatusKey::Running(node, task).to_bytes();
        let queued = StatusKey::Queued(task).to_bytes();
        for (range, holds) in [
            (KeyRange::TASKS, [true, false, false]),
            (KeyRange::STATUSES, [false, true, true]),
            (KeyRange::RUNNING, [false, true, false]),
            (KeyRange::TASKS_AND_STATUSES, [true, true, true]),
            (KeyRange::NODES, [false, false, false]),
        ] {
            assert_eq!([&record, &running, &queued].map(|key| range.contains(key)), holds);
        }
        assert!(KeyRange::NODES.contains(&Key::Node(node).to_bytes()));
    }
}
