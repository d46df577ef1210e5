//! Actors and moments that the tests share.

use std::time::Duration;

use jiff::Timestamp;
use tasks::core::amounts::Amounts;
use tasks::core::id::{HostId, Ids, NodeId, TaskId};
use tasks::core::keys::Key;
use tasks::core::node::{Node, Permissions};
use tasks::core::record::{Record, SCHEMA, Usage};
use tasks::core::status::Exit;
use tasks::core::time::later;
use tasks::core::transition::{
    CancelStep, Claimant, Ending, Finished, Plan, Stamp, Submission, cancel, claim, submit,
};
use tasks::core::txn::{LeaseId, Op};
use tasks::wire;
use uuid::Uuid;

use crate::store::Store;

pub(crate) const TTL_S: i64 = 10;

/// A store, and the moment it is.
pub(crate) struct Scene {
    pub(crate) store: Store,
    pub(crate) now: Timestamp,
    ids: Ids,
}

// === impl Scene ===

impl Scene {
    pub(crate) fn new() -> Self {
        let now = Timestamp::from_second(1_700_000_000).expect("a moment");
        Self { store: Store::default(), now, ids: Ids::new(Uuid::from_u128(1)) }
    }

    pub(crate) fn stamp(&mut self) -> Stamp {
        Stamp { now: self.now, write_id: self.ids.write() }
    }

    pub(crate) fn pass(&mut self, seconds: u64) {
        self.now = later(self.now, Duration::from_secs(seconds));
    }

    /// A node with this number, its lease, host and ids.
    pub(crate) fn register(&mut self, number: u32) -> Claimant {
        let node = node(number);
        self.store.grant(LeaseId(number.into()), TTL_S);
        let put = Op::PutLeased(Key::Node(node.id), node.encode(), LeaseId(number.into()));
        self.store.meddle(vec![put]);
        let registered = self.store.revision();
        Claimant { node: node.id, host: node.host, name: node.name, registered }
    }

    pub(crate) fn lose(&mut self, number: u32) {
        assert!(self.store.revoke(LeaseId(number.into())), "node {number} was there");
    }

    pub(crate) fn submit(&mut self, spec: wire::TaskSpec) -> Record {
        let plan = self.plan_submit(spec);
        self.store.win(&plan)
    }

    pub(crate) fn plan_submit(&mut self, spec: wire::TaskSpec) -> Plan {
        let stamp = self.stamp();
        let fresh_id = TaskId(stamp.write_id.0);
        submit(Submission { spec, fresh_id, by: "tests".to_owned() }, stamp).expect("a valid spec")
    }

    pub(crate) fn claim(&mut self, before: &Record, by: &Claimant) -> Record {
        let plan = claim(before, by, self.stamp()).expect("a queued task");
        self.store.win(&plan)
    }

    pub(crate) fn plan_cancel(&mut self, before: &Record) -> Plan {
        match cancel(before, "tests", self.stamp()).expect("a task that goes on") {
            CancelStep::Write(plan) => plan,
            CancelStep::Done => panic!("{} is canceled", before.id()),
        }
    }

    pub(crate) fn end(&self, running: &Record, ending: Ending) -> Finished {
        let attempt = running.task.last_attempt().expect("it runs");
        let usage = Usage { peak_memory_bytes: 1 << 20, cpu_ms: 15 };
        Finished { node: attempt.node, attempt: attempt.number, ending, usage }
    }

    #[track_caller]
    pub(crate) fn assert_in_sync(&self) {
        assert_eq!(self.store.fsck(), []);
    }
}

pub(crate) fn spec() -> wire::TaskSpec {
    wire::TaskSpec { command: "true".to_owned(), ..Default::default() }
}

pub(crate) fn flagged() -> wire::TaskSpec {
    wire::TaskSpec { restart_on_cluster_error: true, ..spec() }
}

pub(crate) fn exited(code: i32) -> Ending {
    Ending::Exited(Exit { code, ..Exit::default() })
}

pub(crate) fn node(number: u32) -> Node {
    Node {
        id: NodeId(Uuid::from_u128(0x4000_8000_0000_0000_0000 + u128::from(number))),
        host: HostId(Uuid::from_u128(0x1000 + u128::from(number))),
        name: format!("node{number}"),
        address: format!("127.0.0.{number}:8080"),
        version: "0.1.0".to_owned(),
        schema: SCHEMA,
        runtime: "fake".to_owned(),
        enforces_limits: true,
        capacity: Amounts {
            cpu_millis: 1000,
            memory_bytes: 4 << 30,
            pids: 4096,
            disk_bytes: 10 << 30,
        },
        reserved: Amounts::default(),
        reserved_at: Timestamp::from_second(1_700_000_000).expect("a moment"),
        rootfs: ["default".to_owned()].into(),
        permissions: Permissions::default(),
        is_draining: false,
        hindrance: None,
    }
}
