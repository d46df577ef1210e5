//! Reads, writes and transactions with every option, sensible or not.

use etcd_api::etcdserverpb as pb;
use pb::compare::{CompareResult, CompareTarget, TargetUnion};
use pb::request_op::Request;

use super::super::step::Step;
use super::Generator;

/// How deep transactions are nested.
const DEPTH_MAX: usize = 3;

/// One more than etcd allows in one transaction.
const TOO_MANY_OPERATIONS: usize = 129;

// === impl Generator ===

impl Generator {
    pub(super) fn kv_step(&mut self) -> Step {
        match self.below(20) {
            0..6 => Step::Range(self.range_request()),
            6 => Step::RangeStream(self.stream_request()),
            7..12 => Step::Put(self.put_request()),
            12..14 => Step::Delete(self.delete_request()),
            _ => Step::Txn(self.txn_request(DEPTH_MAX)),
        }
    }

    pub(super) fn compact_step(&mut self) -> Step {
        // Watches that have not caught up may be cancelled by a compaction, or not.
        let revision = match self.below(3) {
            0 => self.any_revision(),
            _ => self.world.revision - self.below(12) as i64,
        };
        // A fresh etcd accepts 0, and from then on repeats the hash of nothing that it made while
        // compacting to whoever asks for the newest.
        let revision = if revision == 0 { 1 } else { revision };
        let physical = self.one_in(2);
        let compact = Step::Compact(pb::CompactionRequest { revision, physical });
        self.planned.push_back(compact);
        Step::Settle
    }

    fn range_request(&mut self) -> pb::RangeRequest {
        let (key, range_end) = self.interval();
        pb::RangeRequest {
            key,
            range_end,
            limit: if self.one_in(3) { self.below(6) as i64 - 1 } else { 0 },
            revision: if self.one_in(3) { self.any_revision() } else { 0 },
            sort_order: if self.one_in(3) { self.enumeration(3) } else { 0 },
            sort_target: if self.one_in(3) { self.enumeration(5) } else { 0 },
            serializable: self.one_in(4),
            keys_only: self.one_in(6),
            count_only: self.one_in(8),
            min_mod_revision: self.filter_revision(),
            max_mod_revision: self.filter_revision(),
            min_create_revision: self.filter_revision(),
            max_create_revision: self.filter_revision(),
        }
    }

    /// Mostly without what a stream refuses.
    fn stream_request(&mut self) -> pb::RangeRequest {
        let request = self.range_request();
        if self.one_in(3) {
            return request;
        }
        pb::RangeRequest {
            sort_order: 0,
            sort_target: 0,
            min_mod_revision: 0,
            max_mod_revision: 0,
            min_create_revision: 0,
            max_create_revision: 0,
            ..request
        }
    }

    /// A number of an enumeration of so many, or sometimes one that it does not have.
    fn enumeration(&mut self, count: usize) -> i32 {
        let number = if self.one_in(30) { count + 4 } else { self.below(count) };
        i32::try_from(number).expect("enumerations are small")
    }

    fn filter_revision(&mut self) -> i64 {
        if self.one_in(8) { self.any_revision() } else { 0 }
    }

    fn put_request(&mut self) -> pb::PutRequest {
        let ignore_value = self.one_in(10);
        let ignore_lease = self.one_in(10);
        let has_value = !ignore_value || self.one_in(6);
        let has_lease = if ignore_lease { self.one_in(6) } else { self.one_in(4) };
        pb::PutRequest {
            key: self.key_or_empty(),
            value: if has_value { self.value() } else { bytes::Bytes::new() },
            lease: if has_lease { self.lease() } else { 0 },
            prev_kv: self.one_in(3),
            ignore_value,
            ignore_lease,
        }
    }

    fn delete_request(&mut self) -> pb::DeleteRangeRequest {
        let (key, range_end) = self.interval();
        pb::DeleteRangeRequest { key, range_end, prev_kv: self.one_in(2) }
    }

    /// etcd's check for keys written twice takes an open end for an end at the zero byte and so
    /// misses what it covers; it then applies both writes, which windlass refuses.
    fn bounded_delete_request(&mut self) -> pb::DeleteRangeRequest {
        let request = self.delete_request();
        let is_open = request.range_end == "\0";
        let range_end =
            if is_open { bytes::Bytes::from_static(b"\xff") } else { request.range_end };
        pb::DeleteRangeRequest { range_end, ..request }
    }

    pub(super) fn txn_request(&mut self, depth: usize) -> pb::TxnRequest {
        let compares = self.below(3);
        pb::TxnRequest {
            compare: (0..compares).map(|_| self.compare()).collect(),
            success: self.branch(depth),
            failure: self.branch(depth),
        }
    }

    fn branch(&mut self, depth: usize) -> Vec<pb::RequestOp> {
        if depth == DEPTH_MAX && self.one_in(60) {
            let operation =
                pb::RequestOp { request: Some(Request::RequestRange(self.range_request())) };
            return vec![operation; TOO_MANY_OPERATIONS];
        }
        let operations = self.below(4);
        (0..operations).map(|_| self.operation(depth)).collect()
    }

    fn operation(&mut self, depth: usize) -> pb::RequestOp {
        let request = match self.below(12) {
            0..4 => Request::RequestRange(self.range_request()),
            4..9 => Request::RequestPut(self.put_request()),
            9 => Request::RequestDeleteRange(self.bounded_delete_request()),
            _ if depth > 0 => Request::RequestTxn(self.txn_request(depth - 1)),
            _ => Request::RequestPut(self.put_request()),
        };
        let is_empty = self.one_in(200);
        pb::RequestOp { request: (!is_empty).then_some(request) }
    }

    fn compare(&mut self) -> pb::Compare {
        let (key, range_end) = self.interval();
        let (target, union) = self.target();
        let has_union = !self.one_in(40);
        pb::Compare {
            result: self.pick(&[
                CompareResult::Equal,
                CompareResult::Greater,
                CompareResult::Less,
                CompareResult::NotEqual,
            ]) as i32,
            target: target as i32,
            key,
            range_end: if self.one_in(3) { range_end } else { bytes::Bytes::new() },
            target_union: has_union.then_some(union),
        }
    }

    fn target(&mut self) -> (CompareTarget, TargetUnion) {
        match self.below(5) {
            0 => (CompareTarget::Version, TargetUnion::Version(self.below(4) as i64)),
            1 => (CompareTarget::Create, TargetUnion::CreateRevision(self.any_revision())),
            2 => (CompareTarget::Mod, TargetUnion::ModRevision(self.any_revision())),
            3 => (CompareTarget::Value, TargetUnion::Value(self.value())),
            _ => (CompareTarget::Lease, TargetUnion::Lease(self.lease())),
        }
    }
}
