//! Turns, as the API server sees them: every request in order, and what is left in the end.
//!
//! A small server stands in for the real one, because no real one can be made to fail at a given
//! request, or to die between doing something and saying so. Against a real one the processor is
//! tested in `e2e`.

mod crashes;
mod numbers;
mod server;
mod told;
mod turns;

use std::sync::Arc;

use jiff::Timestamp;
use kubekit::{
    events,
    health::Health,
    lease::core::Timings,
    lock::{self, Locks},
    metrics::Events as EventMetrics,
};
use prometheus_client::registry::Registry;
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use self::server::Server;
use super::{Backlog, Context, Status, turn::Turn};
use crate::{
    core::{
        names::{NodeHash, TransactionName},
        object::{Labels, Marker, Uid},
        policy::Policy,
        queue::{Listed, Seen, TurnEnd},
        snapshot::Snapshot,
        transaction::{Kind, Transaction},
    },
    kubernetes::Objects,
    metrics::Metrics,
    options::Namespaces,
};

/// The one node of these tests.
const NODE: &str = "a";

/// A processor before its server, with what waits for its node.
struct Scene {
    server: Server,
    context: Context,
    events: events::Service,
    health: Health,
    registry: Registry,
}

fn clock() -> Timestamp {
    "2026-03-01T09:00:00Z".parse().unwrap()
}

/// `x=1 y=2`.
fn labels(text: &str) -> Labels {
    let pair = |word: &str| {
        let (key, value) = word.split_once('=').unwrap();
        (key.to_owned(), value.to_owned())
    };
    text.split_whitespace().map(pair).collect()
}

fn added(uid: &str, rv: &str) -> Transaction {
    Transaction {
        name: TransactionName::new(NodeHash::of(NODE), rv.parse().unwrap()),
        node: NODE.to_owned(),
        uid: Some(Uid(uid.to_owned())),
        created: None,
        source: None,
        kind: Kind::Added,
    }
}

fn deleted(uid: &str, rv: &str, marker: Option<&str>, text: &str) -> Transaction {
    let snapshot = Snapshot {
        node: NODE.to_owned(),
        uid: Some(Uid(uid.to_owned())),
        rv: rv.parse().unwrap(),
        marker: marker.map(|marker| Marker(marker.to_owned())),
        labels: labels(text),
    };
    Transaction { kind: Kind::Deleted(snapshot), ..added(uid, rv) }
}

// === impl Scene ===

impl Scene {
    fn new(server: &Server, holder: &str) -> Self {
        let client = server.client();
        let lock_options = lock::Options {
            namespace: Namespaces::default().transactions,
            holder: holder.to_owned(),
            labels: [].into(),
            timings: Timings::LOCK,
            clock,
        };
        let (mut registry, health) = (Registry::default(), Health::default());
        let options = events::Options {
            controller: "windlass.dev/labels".to_owned(),
            instance: holder.to_owned(),
            clock,
        };
        let event_metrics = EventMetrics::register(&mut registry);
        let (events, handle) = events::new(client.clone(), options, event_metrics);
        let status = Status::new(&health, Arc::new(Notify::new()));
        status.on_watching();
        let context = Context {
            objects: Objects::new(&client, &Namespaces::default()),
            locks: Locks::new(client, lock_options).unwrap(),
            backlog: Backlog::new(holder),
            policy: Policy::default(),
            metrics: Metrics::new(&mut registry),
            events: handle,
            status,
            clock,
            is_dry_run: false,
        };
        Self { server: server.clone(), context, events, health, registry }
    }

    /// Queues what the server has, as a list would.
    fn list(&self) {
        let mut listed = Listed::default();
        for document in self.server.transactions() {
            listed.push(Seen {
                name: document.name.parse().unwrap(),
                uid: document.uid.clone(),
                created: clock(),
                is_quarantined: document.labels.contains_key(crate::core::keys::QUARANTINED),
                bytes: 100,
                document: Some(document),
            });
        }
        self.context.backlog.on_listed(listed);
    }

    async fn turn(&self) -> TurnEnd {
        let hash = self.context.backlog.next().await;
        let end = Turn::new(&self.context, hash.clone()).run().await;
        self.context.backlog.release(&hash, end);
        end
    }

    /// Posts the Events and tells the conversation.
    async fn conversation(self) -> String {
        let shutdown = CancellationToken::new();
        shutdown.cancel();
        self.events.run(shutdown).await;
        self.server.conversation()
    }
}

/// A server with these transactions posted, and a node if it has a uid.
fn world(node: Option<(&str, &str)>, transactions: &[Transaction]) -> Server {
    let server = Server::default();
    if let Some((uid, text)) = node {
        let metadata = json!({
            "name": NODE, "uid": uid, "labels": labels(text),
            "creationTimestamp": "2026-03-01T08:59:59Z",
        });
        server.put("node a", json!({ "metadata": metadata }));
    }
    for transaction in transactions {
        server.post(&transaction.encode().unwrap());
    }
    server
}
