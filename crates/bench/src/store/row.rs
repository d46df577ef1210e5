//! The rows of the table: what is done, by how many, on which servers.

use std::fmt;

use super::subject::{Place, Role, Subject};

/// Values of the plain puts.
const SMALL_BYTES: usize = 256;
const LARGE_BYTES: usize = 2048;

/// Writers whose puts are followed until every watcher saw them.
const WATCH_WRITERS: usize = 16;

/// One row: a kind of work under a number of clients, dealt over a number of connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub work: Work,
    pub clients: usize,
    pub connections: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    Put {
        value_bytes: usize,
    },
    TxnCreate,
    TxnUpdate,
    Get,
    List(Listing),
    Count,
    /// The rate counts events; the latency is that of a put until all watchers saw it.
    Watch {
        watchers: usize,
    },
    LeaseGrant,
    LeaseKeepAlive,
    Mixed,
    /// Objects written and updated, then what that left in memory and on disk.
    Fill,
    PutWhile(Disturbance),
}

/// How all objects are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    Pages,
    Whole,
    Stream,
}

/// What goes on beside a load that should not notice it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    Compaction,
    Snapshot,
    SlowWatchers,
}

/// The whole table, in its order.
#[must_use]
pub fn all() -> Vec<Row> {
    let row = |work, clients, connections| Row { work, clients, connections };
    let mut rows = Vec::new();
    for value_bytes in [SMALL_BYTES, LARGE_BYTES] {
        for (clients, connections) in [(1, 1), (100, 16), (1000, 100)] {
            rows.push(row(Work::Put { value_bytes }, clients, connections));
        }
    }
    rows.extend([
        row(Work::TxnCreate, 100, 16),
        row(Work::TxnUpdate, 100, 16),
        row(Work::Get, 100, 16),
        row(Work::List(Listing::Pages), 8, 8),
        row(Work::List(Listing::Whole), 8, 8),
        row(Work::List(Listing::Stream), 8, 8),
        row(Work::Count, 1, 1),
        row(Work::Watch { watchers: 1 }, WATCH_WRITERS, WATCH_WRITERS),
        row(Work::Watch { watchers: 100 }, WATCH_WRITERS, WATCH_WRITERS),
        row(Work::Watch { watchers: 1000 }, WATCH_WRITERS, WATCH_WRITERS),
        row(Work::LeaseGrant, 100, 16),
        row(Work::LeaseKeepAlive, 100, 16),
        row(Work::Mixed, 100, 16),
        row(Work::Fill, 100, 16),
        row(Work::PutWhile(Disturbance::Compaction), 100, 16),
        row(Work::PutWhile(Disturbance::Snapshot), 100, 16),
        row(Work::PutWhile(Disturbance::SlowWatchers), 100, 16),
    ]);
    rows
}

// === impl Row ===

impl Row {
    /// Unique in the table; what `--rows` is matched with.
    #[must_use]
    pub fn name(&self) -> String {
        match self.work {
            Work::Watch { .. } | Work::Fill | Work::Count => self.work.to_string(),
            _ => format!("{}-c{}", self.work, self.clients),
        }
    }

    /// Whether the row says anything about this server.
    #[must_use]
    pub fn runs_on(&self, subject: &Subject) -> bool {
        let is_ours = matches!(subject.place, Place::Launched(_));
        match (self.work, subject.role) {
            // Needs a restart, and a folder to look into.
            (Work::Fill, role) => role.is_store() && is_ours,
            (Work::PutWhile(_), role) => role.is_store(),
            (work, Role::DurableCeiling) => work.is_durable_write(),
            _ => true,
        }
    }
}

// === impl Work ===

impl Work {
    /// What the rate counts.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::List(_) => "list",
            Self::Watch { .. } => "event",
            _ => "op",
        }
    }

    /// Whether every operation is a put that has to be durable before it is answered.
    #[must_use]
    pub fn is_durable_write(self) -> bool {
        matches!(self, Self::Put { .. } | Self::TxnCreate | Self::TxnUpdate)
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Put { value_bytes } => write!(f, "put-{value_bytes}B"),
            Self::TxnCreate => f.write_str("txn-create"),
            Self::TxnUpdate => f.write_str("txn-update"),
            Self::Get => f.write_str("get"),
            Self::List(Listing::Pages) => f.write_str("list-pages"),
            Self::List(Listing::Whole) => f.write_str("list-whole"),
            Self::List(Listing::Stream) => f.write_str("list-stream"),
            Self::Count => f.write_str("count"),
            Self::Watch { watchers } => write!(f, "watch-{watchers}"),
            Self::LeaseGrant => f.write_str("lease-grant"),
            Self::LeaseKeepAlive => f.write_str("lease-keep-alive"),
            Self::Mixed => f.write_str("mixed"),
            Self::Fill => f.write_str("fill"),
            Self::PutWhile(Disturbance::Compaction) => f.write_str("put-while-compacting"),
            Self::PutWhile(Disturbance::Snapshot) => f.write_str("put-while-snapshotting"),
            Self::PutWhile(Disturbance::SlowWatchers) => f.write_str("put-with-slow-watchers"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique() {
        let rows = all();
        let names: BTreeSet<String> = rows.iter().map(Row::name).collect();
        assert_eq!(names.len(), rows.len());
    }
}
