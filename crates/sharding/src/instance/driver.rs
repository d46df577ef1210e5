//! Carries out what the core decides: requests about the Lease and about objects, each answered once,
//! and the watches of draining objects. One task does it all, so that its end is the end of the
//! instance, whatever brought it about.

use std::collections::VecDeque;
use std::error;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::{BoxFuture, FutureExt};
use futures::stream::FuturesUnordered;
use kube::Client;
use kubekit::follow::follow;
use tokio_util::sync::CancellationToken;

use super::desk::Desk;
use super::drain_feed::DrainFeed;
use super::kind::{Kind, Selectors};
use super::lease::OwnLease;
use super::standing::{End, Standing};
use crate::core::instance::{Command, Event, Outcome};
use crate::core::names::Names;
use crate::core::object::{GroupKind, ObjectName, Version};
use crate::kubernetes;

/// Objects asked about at once. The rest waits in line: giving up a thousand objects must not take the
/// API server from those who work.
const OBJECTS_INFLIGHT_MAX: usize = 32;

/// Questions that failed are asked again after this long.
const RETRY_AFTER: Duration = Duration::from_secs(1);

pub(super) struct Driver {
    pub(super) desk: Arc<Desk>,
    pub(super) standing: Arc<Standing>,
    pub(super) lease: Arc<OwnLease>,
    pub(super) client: Client,
    pub(super) names: Names,
    pub(super) selectors: Selectors,
    /// The main kinds of the ring, as it was when the instance joined.
    pub(super) of_ring: Vec<Arc<Kind>>,
}

/// What is under way.
struct Work {
    driver: Driver,
    /// The main kinds of the ring, and what else is worked on here.
    kinds: Vec<Arc<Kind>>,
    /// How many kinds that are worked on here are known.
    subjects: usize,
    watches: FuturesUnordered<BoxFuture<'static, ()>>,
    answers: FuturesUnordered<BoxFuture<'static, Option<Event>>>,
    about_objects: FuturesUnordered<BoxFuture<'static, Option<Event>>>,
    /// At most one for each object that is to be given up.
    waiting: VecDeque<Command>,
}

// === impl Driver ===

impl Driver {
    pub(super) async fn run(self) {
        let mut work = Work {
            driver: self,
            kinds: Vec::new(),
            subjects: 0,
            watches: FuturesUnordered::new(),
            answers: FuturesUnordered::new(),
            about_objects: FuturesUnordered::new(),
            waiting: VecDeque::new(),
        };
        work.driver.desk.tell(Event::Tick);
        let end = work.run().await;
        tracing::info!(?end, "the instance has ended");
        work.driver.standing.on_end(end);
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.desk.close();
        self.standing.on_over();
    }
}

// === impl Work ===

impl Work {
    async fn run(&mut self) -> End {
        let desk = Arc::clone(&self.driver.desk);
        loop {
            // In this order: a command is about a kind that was made known before it.
            let commands = desk.take_commands();
            self.watch_new_kinds();
            for command in commands {
                if let Some(end) = self.carry_out(command) {
                    return end;
                }
            }
            self.ask_about_objects();
            tokio::select! {
                () = desk.rung() => {}
                () = tokio::time::sleep(desk.idle_for()) => desk.tell(Event::Tick),
                Some(answer) = self.answers.next() => self.on_answer(answer),
                Some(answer) = self.about_objects.next() => self.on_answer(answer),
                Some(()) = self.watches.next() => {}
            }
        }
    }

    fn on_answer(&self, answer: Option<Event>) {
        let Some(event) = answer else { return };
        let desk = &self.driver.desk;
        match &event {
            Event::Acknowledged(_, Outcome::Done(())) => desk.metrics().on_ack(),
            Event::LeaseWritten { outcome: Outcome::Done(_), .. } => {
                desk.tell(event);
                desk.metrics().set_margin(desk.margin().unwrap_or_default());
                return;
            }
            _ => {}
        }
        desk.tell(event);
    }

    /// Objects of kinds that nobody works on here have our id all the same, and are to be given up when
    /// that is asked.
    fn watch_ring(&mut self) {
        for kind in self.driver.of_ring.clone() {
            self.watch(kind);
        }
    }

    fn watch_new_kinds(&mut self) {
        for subject in self.driver.desk.subjects_after(self.subjects) {
            self.subjects += 1;
            let Driver { client, names, .. } = &self.driver;
            self.watch(Arc::new(Kind::new(client.clone(), names.clone(), subject)));
        }
    }

    fn watch(&mut self, kind: Arc<Kind>) {
        if self.kinds.iter().any(|known| known.subject.kind == kind.subject.kind) {
            return;
        }
        let Driver { desk, selectors, .. } = &self.driver;
        let feed = DrainFeed::new(Arc::clone(desk), Arc::clone(&kind), selectors.clone());
        self.watches.push(follow(feed, CancellationToken::new()).boxed());
        self.kinds.push(kind);
    }

    /// How the instance ends, if it does.
    fn carry_out(&mut self, command: Command) -> Option<End> {
        let Driver { desk, standing, lease, .. } = &self.driver;
        match command {
            Command::ReadLease => {
                let lease = Arc::clone(lease);
                self.answers.push(async move { Some(lease.read().await) }.boxed());
            }
            Command::WriteLease { lease: wanted, is_new } => {
                let (lease, sent) = (Arc::clone(lease), desk.now());
                let write = async move { Some(lease.write(&wanted, is_new, sent).await) };
                self.answers.push(write.boxed());
            }
            Command::AskCarried => {
                let (kinds, own) = (self.driver.of_ring.clone(), self.driver.selectors.own.clone());
                self.answers.push(ask_carried(kinds, own).map(Some).boxed());
            }
            Command::ListDrains { epoch } => {
                let draining = self.driver.selectors.draining.clone();
                let listed = list_drains(self.kinds.clone(), draining, epoch);
                self.answers.push(listed.map(Some).boxed());
            }
            Command::ReadObject(_) | Command::Acknowledge { .. } => self.waiting.push_back(command),
            Command::Cancel(name) => desk.cancel(&name),
            Command::Work => {
                standing.on_working();
                self.watch_ring();
            }
            Command::Lost(loss) => return Some(End::Lost(loss)),
            Command::Left => return Some(End::Left),
        }
        None
    }

    fn ask_about_objects(&mut self) {
        while self.about_objects.len() < OBJECTS_INFLIGHT_MAX
            && let Some(command) = self.waiting.pop_front()
        {
            match command {
                Command::Acknowledge { name, version } => {
                    let kind = self.kind(&name.kind);
                    self.about_objects.push(acknowledge(kind, name, version).map(Some).boxed());
                }
                Command::ReadObject(name) => {
                    let kind = self.kind(&name.kind);
                    self.about_objects.push(read(kind, name).boxed());
                }
                other => unreachable!("{other:?} is not about one object"),
            }
        }
    }

    fn kind(&self, of: &GroupKind) -> Arc<Kind> {
        let kind = self.kinds.iter().find(|kind| kind.subject.kind == *of);
        Arc::clone(kind.expect("objects come from watches and reconciles of known kinds"))
    }
}

/// Whether any object of the ring carries our id. Asked until it is answered: the Lease is renewed
/// meanwhile, and nothing begins.
async fn ask_carried(kinds: Vec<Arc<Kind>>, own: String) -> Event {
    loop {
        match has_any(&kinds, &own).await {
            Ok(is_carried) => return Event::Carried(is_carried),
            Err(error) => {
                log(&error);
                tokio::time::sleep(RETRY_AFTER).await;
            }
        }
    }
}

async fn has_any(kinds: &[Arc<Kind>], own: &str) -> Result<bool, kubernetes::Error> {
    for kind in kinds {
        if kind.has_any(own).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn list_drains(kinds: Vec<Arc<Kind>>, draining: String, epoch: u64) -> Event {
    let mut objects = Vec::new();
    for kind in kinds {
        match kind.list(&draining).await {
            Ok(listed) => objects.extend(listed),
            Err(error) => {
                log(&error);
                // The core asks again as soon as it is answered.
                tokio::time::sleep(RETRY_AFTER).await;
                return Event::DrainsNotListed;
            }
        }
    }
    Event::DrainsListed { epoch, objects }
}

async fn acknowledge(kind: Arc<Kind>, name: ObjectName, version: Version) -> Event {
    let outcome = kind.acknowledge(&name, &version).await;
    Event::Acknowledged(name, outcome)
}

/// Nothing if it failed: the core asks again by itself.
async fn read(kind: Arc<Kind>, name: ObjectName) -> Option<Event> {
    match kind.read(&name).await {
        Ok(event) => Some(event),
        Err(error) => {
            log(&error);
            None
        }
    }
}

/// Whatever it was, it is asked again.
fn log(error: &kubernetes::Error) {
    let error: &dyn error::Error = error;
    tracing::warn!(error, "a question about our objects was not answered");
}
