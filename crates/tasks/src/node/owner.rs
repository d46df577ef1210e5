//! The one owner of the agent: brings it what happened, and sees to it that what it wants is done.

mod carry;
mod publish;

use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::audience::Audience;
use super::commands::Sender;
use super::handle::{Request, View};
use super::runs::Runs;
use crate::clock::Clock;
use crate::core::admission::Hindrance;
use crate::core::agent::{Agent, Event};
use crate::core::id::NodeId;
use crate::core::time::Boottime;
use crate::lifecycle::{PartError, Work};
use crate::metrics::Metrics;
use crate::store::{Order, Pulse, Reins};
use carry::Due;
use publish::{Absent, Fenced};

/// Events taken in before the agent looks. It looks at everything, so many at once cost as one does;
/// bounded so that its commands do not wait.
const EVENTS_MAX: usize = 256;
/// From being told to leave to going whatever is left: results are on disk for the next start.
const LEAVE_WITHIN: Duration = Duration::from_secs(30);
/// For what is killed then to be gone.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);

/// What an owner is made of.
pub(super) struct Parts {
    pub(super) agent: Agent,
    pub(super) clock: Clock,
    pub(super) sender: Sender,
    pub(super) runs: Runs,
    pub(super) audience: Audience,
    pub(super) metrics: Metrics,
    pub(super) sources: Sources,
    pub(super) data_dir: PathBuf,
}

/// Where events come from, besides what the agent wanted done.
pub(super) struct Sources {
    pub(super) changes: mpsc::Receiver<Event>,
    pub(super) requests: mpsc::Receiver<Request>,
    pub(super) reins: Reins,
}

/// See the module.
pub(super) struct Owner {
    parts: Parts,
    work: Work<Event>,
    /// The last registration that was made, and what keeps it.
    registered: Option<(NodeId, Order)>,
    deadline: Boottime,
    fenced: Fenced,
    absent: Absent,
    lists: Lists,
    due: Due,
    /// Set once the node is told to leave: when it goes at the latest.
    leaves_by: Option<Instant>,
    is_draining: bool,
    has_left: bool,
    /// As it was told last.
    hindrance: Option<Hindrance>,
}

/// Which lists have come in.
#[derive(Debug, Default)]
struct Lists {
    has_tasks: bool,
    has_nodes: bool,
}

/// What woke the owner.
enum Woken {
    Event(Event),
    Pulse,
    Asked(Option<Request>),
    Time,
    Shutdown,
}

// === impl Owner ===

impl Owner {
    pub(super) fn new(parts: Parts) -> Self {
        Self {
            parts,
            work: Work::new("node"),
            registered: None,
            deadline: Boottime::default(),
            fenced: Fenced::default(),
            absent: Absent::default(),
            lists: Lists::default(),
            due: Due::new(Instant::now()),
            leaves_by: None,
            is_draining: false,
            has_left: false,
            hindrance: None,
        }
    }

    /// Goes on until `shutdown` and everything is given back, or until that takes too long.
    pub(super) async fn run(mut self, shutdown: CancellationToken) -> Result<(), PartError> {
        self.turn(vec![Event::Tick]).await;
        while !self.is_done() {
            let mut events = Vec::new();
            match self.wake(&shutdown).await? {
                Woken::Event(event) => events.push(event),
                Woken::Asked(request) => events.extend(request.and_then(|it| self.on_request(it))),
                // The turn begins with the pulse, whoever wakes it.
                Woken::Pulse | Woken::Time => {}
                Woken::Shutdown => {
                    self.leaves_by = Some(Instant::now() + LEAVE_WITHIN);
                    events.push(Event::Leave);
                }
            }
            self.gather(&mut events)?;
            self.turn(events).await;
        }
        self.close().await;
        Ok(())
    }

    async fn wake(&mut self, shutdown: &CancellationToken) -> Result<Woken, PartError> {
        let until_wake = self.parts.agent.wake_at().since(self.parts.clock.boot());
        let wake_at = (Instant::now() + until_wake).min(self.due.next());
        let wake_at = self.leaves_by.map_or(wake_at, |leave| leave.min(wake_at));
        let is_leaving = self.leaves_by.is_some();
        let Sources { changes, requests, reins } = &mut self.parts.sources;
        Ok(tokio::select! {
            () = shutdown.cancelled(), if !is_leaving => Woken::Shutdown,
            ended = self.work.next() => Woken::Event(ended?),
            changed = reins.pulses.changed() => {
                changed.or(Err(PartError::Ended("keep-alive")))?;
                Woken::Pulse
            }
            Some(event) = changes.recv() => Woken::Event(event),
            asked = requests.recv(), if !requests.is_closed() => Woken::Asked(asked),
            () = tokio::time::sleep_until(wake_at) => Woken::Time,
        })
    }

    /// Whatever else is there already.
    fn gather(&mut self, events: &mut Vec<Event>) -> Result<(), PartError> {
        while events.len() < EVENTS_MAX {
            if let Some(ended) = self.work.try_next() {
                events.push(ended?);
            } else if let Ok(event) = self.parts.sources.changes.try_recv() {
                events.push(event);
            } else {
                break;
            }
        }
        Ok(())
    }

    async fn turn(&mut self, events: Vec<Event>) {
        for event in &events {
            self.parts.audience.tell(self.parts.agent.cache(), event).await;
            self.note(event);
        }
        // First: the lease may have been kept while this task was held up, and the agent must know before
        // it looks at the time.
        let pulse = self.pulse();
        let now = self.parts.clock.now();
        for command in self.parts.agent.on_all(now, pulse.into_iter().chain(events)) {
            self.carry_out(command);
        }
        self.do_chores();
        self.forget_recorded();
        self.publish(now);
    }

    /// What the shell itself has to know of an event.
    fn note(&mut self, event: &Event) {
        if self.lists.is_again(event) {
            self.parts.metrics.on_resync();
        }
        match event {
            Event::Registered { node, lease, sent, .. } => {
                self.registered = Some((*node, Order { lease: *lease, sent: *sent }));
            }
            Event::Reported { task, attempt, .. } => self.parts.runs.on_reported(*task, *attempt),
            Event::Drain | Event::Leave => self.is_draining = true,
            _ => {}
        }
    }

    /// The newest. Hearing it again is no harm.
    fn pulse(&mut self) -> Option<Event> {
        let pulse = *self.parts.sources.reins.pulses.borrow_and_update();
        let Pulse { lease, sent, remaining } = pulse?;
        Some(Event::KeptAlive { lease, sent, remaining })
    }

    fn on_request(&mut self, request: Request) -> Option<Event> {
        match request {
            Request::Drain => Some(Event::Drain),
            Request::Look(look) => {
                let (now, agent) = (self.parts.clock.now(), &self.parts.agent);
                let absences = self.absent.absences(now.boot, agent.timing().ttl());
                look(&View { cache: agent.cache(), absences: &absences, now });
                None
            }
        }
    }

    /// Whether the node was told to leave and has, or is out of time.
    fn is_done(&self) -> bool {
        let has_left = self.has_left && self.work.is_empty();
        self.leaves_by.is_some_and(|leave| has_left || leave <= Instant::now())
    }

    /// What still runs would die by the deadline; why wait for it.
    async fn close(self) {
        self.parts.runs.stop_all();
        let host = self.parts.runs.host().clone();
        if tokio::time::timeout(CLOSE_WITHIN, host.close()).await.is_err() {
            tracing::error!("attempts are left behind; the next start kills them");
        }
    }
}

// === impl Lists ===

impl Lists {
    fn is_complete(&self) -> bool {
        self.has_tasks && self.has_nodes
    }

    /// Whether it is a list, and not the first of its kind.
    fn is_again(&mut self, event: &Event) -> bool {
        match event {
            Event::TasksListed(..) => std::mem::replace(&mut self.has_tasks, true),
            Event::NodesListed(..) => std::mem::replace(&mut self.has_nodes, true),
            _ => false,
        }
    }
}
