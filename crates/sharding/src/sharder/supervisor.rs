//! One task for each Ring, from when the Ring is seen until it is gone. Knows all Rings and namespaces,
//! and shows them to every ring's task; never works on a ring itself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use kube::api::DynamicObject;
use kubekit::election;
use kubekit::health::Check;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::ring::RingTask;
use super::{Context, tell};
use crate::core::spec::Namespace;
use crate::kubernetes::Ring;

/// What was read of Rings and namespaces and not yet taken in.
pub(super) const NEWS_MAX: usize = 64;

/// How often the probes are told that we are at work, and for how long that counts.
const ALIVE_EVERY: Duration = Duration::from_secs(10);
const ALIVE_FOR: Duration = Duration::from_secs(60);

/// What its feeds tell.
pub(super) enum News {
    /// These Rings exist and no others.
    RingsListed(Vec<DynamicObject>),
    RingSet(Box<DynamicObject>),
    RingLeft(String),
    /// These namespaces exist and no others.
    NamespacesListed(Vec<Namespace>),
    NamespaceSet(Namespace),
    NamespaceLeft(String),
}

/// What a ring's task sees of the cluster.
#[derive(Clone)]
pub(super) struct View {
    pub(super) ring: Arc<Ring>,
    /// All Rings, this one included.
    pub(super) rings: Arc<Vec<Arc<Ring>>>,
    pub(super) namespaces: Arc<Vec<Namespace>>,
}

pub(super) struct Supervisor {
    context: Arc<Context>,
    standing: election::Handle,
    live: Check,
    rings: BTreeMap<String, Arc<Ring>>,
    /// Nothing before they were listed: which objects a ring has depends on them.
    namespaces: Option<BTreeMap<String, Namespace>>,
    running: BTreeMap<String, Running>,
    /// Each ends with the name of its ring.
    tasks: FuturesUnordered<BoxFuture<'static, String>>,
}

struct Running {
    /// Of the Ring: another one may come to bear its name.
    uid: Option<String>,
    view: watch::Sender<View>,
    stop: CancellationToken,
}

// === impl Supervisor ===

impl Supervisor {
    pub(super) fn new(context: Arc<Context>, standing: election::Handle, live: Check) -> Self {
        Self {
            context,
            standing,
            live,
            rings: BTreeMap::new(),
            namespaces: None,
            running: BTreeMap::new(),
            tasks: FuturesUnordered::new(),
        }
    }

    pub(super) async fn run(mut self, mut news: mpsc::Receiver<News>, stop: CancellationToken) {
        let mut alive = tokio::time::interval(ALIVE_EVERY);
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                _ = alive.tick() => self.live.pass_for(ALIVE_FOR),
                Some(ended) = self.tasks.next(), if !self.tasks.is_empty() => {
                    self.on_ended(&ended, &stop);
                }
                heard = news.recv() => match heard {
                    Some(heard) => self.on_news(heard, &stop),
                    // The watches have ended; being told so is somebody else's to decide.
                    None => break,
                },
            }
        }
        self.running.values().for_each(|running| running.stop.cancel());
        while self.tasks.next().await.is_some() {}
        stop.cancelled().await;
    }

    fn on_news(&mut self, news: News, stop: &CancellationToken) {
        match news {
            News::RingsListed(listed) => {
                self.rings.clear();
                for stored in listed {
                    self.on_ring(stored);
                }
            }
            News::RingSet(stored) => self.on_ring(*stored),
            News::RingLeft(name) => {
                self.rings.remove(&name);
            }
            News::NamespacesListed(listed) => {
                let named = listed.into_iter().map(|it| (it.name.clone(), it));
                self.namespaces = Some(named.collect());
            }
            News::NamespaceSet(namespace) => {
                let known = self.namespaces.get_or_insert_default();
                let before = known.insert(namespace.name.clone(), namespace.clone());
                // Most changes of a namespace are none that a ring looks at.
                if before.as_ref() == Some(&namespace) {
                    return;
                }
            }
            News::NamespaceLeft(name) => {
                self.namespaces.get_or_insert_default().remove(&name);
            }
        }
        self.show(stop);
    }

    /// A Ring that cannot be read stands still: its instances keep what they have.
    fn on_ring(&mut self, stored: DynamicObject) {
        let name = stored.metadata.name.clone().unwrap_or_default();
        let metadata = stored.metadata.clone();
        match Ring::read(stored).and_then(|ring| ring.name().map(|_| ring)) {
            Ok(ring) => {
                self.rings.insert(name, Arc::new(ring));
            }
            Err(error) => {
                self.rings.remove(&name);
                tell::unreadable(&self.context.events, &metadata, &error);
                let error = &error as &dyn std::error::Error;
                tracing::error!(ring = name, error, "the ring cannot be worked on");
            }
        }
    }

    /// Shows every ring's task how things are; begins and ends tasks.
    fn show(&mut self, stop: &CancellationToken) {
        let Some(namespaces) = &self.namespaces else { return };
        let namespaces = Arc::new(namespaces.values().cloned().collect::<Vec<_>>());
        let rings = Arc::new(self.rings.values().cloned().collect::<Vec<_>>());
        for (name, ring) in &self.rings {
            let view =
                View { ring: ring.clone(), rings: rings.clone(), namespaces: namespaces.clone() };
            match self.running.get(name) {
                Some(running) if running.uid == ring.metadata.uid => {
                    running.view.send_replace(view);
                }
                Some(running) => running.stop.cancel(),
                None => {
                    let (sender, receiver) = watch::channel(view);
                    let stop = stop.child_token();
                    let task = RingTask::new(self.context.clone(), self.standing.clone(), receiver);
                    let (name, ended) = (name.clone(), name.clone());
                    let run = task.run(stop.clone());
                    self.tasks.push(Box::pin(async move {
                        run.await;
                        ended
                    }));
                    let uid = ring.metadata.uid.clone();
                    self.running.insert(name, Running { uid, view: sender, stop });
                }
            }
        }
        let gone = self.running.iter().filter(|(name, _)| !self.rings.contains_key(*name));
        gone.for_each(|(_, running)| running.stop.cancel());
    }

    /// A Ring that was deleted and created again gets its new task when the old one has ended.
    fn on_ended(&mut self, name: &str, stop: &CancellationToken) {
        self.running.remove(name);
        self.show(stop);
    }
}
