//! The store: it carries out what arrives, ends leases, and shows changes to whoever watches.

use std::time::Duration;

use tasks::core::agent::Event;
use tasks::core::keys::{Key, KeyRange};
use tasks::core::node::Node;
use tasks::core::time::Boottime;
use tasks::core::txn::{LeaseId, Op};

use super::{Happening, Request, World};
use crate::scene;
use crate::sim::host::{STREAMS, Stream};

const TTL: Duration = Duration::from_secs(10);

// === impl World ===

impl World {
    pub(super) fn arrive(&mut self, host: usize, incarnation: u32, request: Request) {
        match request {
            Request::Txn { token, txn } => {
                // A lease that is gone is an answer too, but one that says nothing of compares.
                if let Some(answer) = self.store.try_txn(&txn) {
                    self.answer(host, incarnation, Event::Answered { token, answer });
                }
            }
            Request::Register { node, sent } => self.register(host, incarnation, &node, sent),
            Request::KeepAlive { lease, sent } => {
                let is_held = self.store.has_lease(lease);
                let remaining = if is_held { TTL } else { Duration::ZERO };
                if is_held {
                    self.renew(lease);
                }
                let event = Event::KeptAlive { lease, sent, remaining };
                self.answer(host, incarnation, event);
            }
            Request::Revoke(lease) => drop(self.store.revoke(lease)),
        }
        self.publish();
    }

    fn register(&mut self, host: usize, incarnation: u32, node: &Node, sent: Boottime) {
        self.next_lease += 1;
        let lease = LeaseId(self.next_lease);
        self.store.grant(lease, scene::TTL_S);
        self.store.meddle(vec![Op::PutLeased(Key::Node(node.id), node.encode(), lease)]);
        self.renew(lease);
        let revision = self.store.revision();
        if self.hosts[host].incarnation == incarnation {
            // Written to the data directory, so that the next daemon can give it up.
            self.hosts[host].lease = Some(lease);
        }
        let event = Event::Registered { node: node.id, lease, revision, sent };
        self.answer(host, incarnation, event);
    }

    fn renew(&mut self, lease: LeaseId) {
        self.leases.insert(lease, self.now + TTL);
        self.after(TTL, Happening::LeaseEnds(lease));
    }

    /// The TTL is a minimum: the store may be late, never early.
    pub(super) fn end_lease(&mut self, lease: LeaseId) {
        if self.leases.get(&lease).is_some_and(|until| *until <= self.now) {
            self.leases.remove(&lease);
            self.store.revoke(lease);
            self.publish();
        }
    }

    /// Passes on to every watch what it has not seen.
    pub(super) fn publish(&mut self) {
        for index in 0..self.hosts.len() {
            for (number, range) in STREAMS.into_iter().enumerate() {
                self.publish_to(index, number, range);
            }
        }
    }

    fn publish_to(&mut self, index: usize, number: usize, range: KeyRange) {
        let stream = self.hosts[index].streams[number];
        if !stream.is_open || stream.sent == self.store.revision() {
            return;
        }
        let events = self.store.events(range, stream.sent);
        let is_slow = self.is_rough() && self.chance.once_in(10);
        let lag = self.chance.micros(if is_slow { 1_000..800_000 } else { 500..4_000 });
        let arrives = stream.arrives.max(self.now + lag);
        let sent = self.store.revision();
        self.hosts[index].streams[number] = Stream { sent, arrives, is_open: true };
        if !events.is_empty() {
            let incarnation = self.hosts[index].incarnation;
            let event = Event::Changed(events);
            let wait = arrives - self.now;
            self.after(wait, Happening::Tell { host: index, incarnation, event });
        }
    }

    pub(super) fn break_streams(&mut self, host: usize, wait: Duration) {
        self.hosts[host].streams.iter_mut().for_each(|stream| stream.is_open = false);
        let incarnation = self.hosts[host].incarnation;
        self.after(wait, Happening::Relist { host, incarnation });
    }

    /// Lists both, each at its own moment, and watches on from there.
    pub(super) fn relist(&mut self, index: usize) {
        if self.is_cut(index) {
            let wait = self.hosts[index].cut_until - self.now;
            let incarnation = self.hosts[index].incarnation;
            return self.after(wait, Happening::Relist { host: index, incarnation });
        }
        for (number, range) in STREAMS.into_iter().enumerate() {
            let (kvs, at) = (self.store.list(range), self.store.revision());
            let event =
                if number == 0 { Event::TasksListed(kvs, at) } else { Event::NodesListed(kvs, at) };
            let arrives = self.hosts[index].streams[number].arrives;
            let arrives = arrives.max(self.now + self.chance.micros(500..4_000));
            self.hosts[index].streams[number] = Stream { sent: at, arrives, is_open: true };
            let incarnation = self.hosts[index].incarnation;
            let wait = arrives - self.now;
            self.after(wait, Happening::Tell { host: index, incarnation, event });
        }
    }
}
