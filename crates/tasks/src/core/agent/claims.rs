//! Which tasks to take now.

use std::cell::OnceCell;
use std::cmp::Reverse;

use super::Agent;
use super::writes::{Purpose, WantedFor};
use crate::core::admission::Hindrance;
use crate::core::cache::Summary;
use crate::core::id::{NodeId, TaskId};
use crate::core::rank::{Candidate, rank};
use crate::core::record::Record;
use crate::core::starvation::{STARVING_AFTER, Waiting, starving};
use crate::core::steal::{Approach, claims_at_once};
use crate::core::time::{Boottime, Now, until};
use crate::core::transition::{Batch, Claimant, Plan, Stamp, claim};

/// How many due tasks that this node could run are looked at. Beyond them, there is enough before.
const LOOK_AT_MAX: usize = 1024;

/// A queued task whose time has come.
#[derive(Debug)]
pub(super) struct Claimable {
    /// As far as this node knows.
    since: Boottime,
    /// This node's among those that could run it, if it is one of them. Worked out when it is first
    /// asked for: it costs a look at every node.
    rank: OnceCell<Option<usize>>,
}

/// A queued task that this node could run, if it had room.
#[derive(Clone, Copy, Debug)]
struct Offer {
    waiting: Waiting,
    /// In the queue.
    place: usize,
    /// When this node's turn comes.
    ready_at: Boottime,
    priority: i32,
}

// === impl Claimable ===

impl Claimable {
    fn new(since: Boottime) -> Self {
        Self { since, rank: OnceCell::new() }
    }
}

// === impl Offer ===

impl Offer {
    /// What this node is nearest to comes first, the oldest of it at the head; of what is nearer to
    /// others it takes the newest, unless it starves. So nodes with room choose different ones until
    /// few are left.
    fn order(&self, now: Boottime) -> impl Ord + use<> {
        let is_patient = now.since(self.waiting.since) < STARVING_AFTER;
        let is_taken_from_the_end = is_patient && self.waiting.rank > 0;
        let from_the_end = is_taken_from_the_end.then_some(Reverse(self.place));
        (Reverse(self.priority), self.waiting.rank, is_patient, from_the_end, self.place)
    }
}

// === impl Agent ===

impl Agent {
    pub(super) fn claim(&mut self, now: Now) {
        self.hindrance = None;
        let Some(claimant) = self.held_claimant(now).cloned() else { return };
        if self.drain.is_some() {
            return;
        }
        self.note_claimable(now);
        let offers = self.offers(claimant.node);
        self.hindrance = self.hindrance_of(&offers);
        self.ledger.keep_for(starving(now.boot, offers.iter().map(|offer| offer.waiting)));
        for tasks in self.choose(now, &offers) {
            self.take(now, &claimant, &tasks);
        }
    }

    /// Remembers since when each task could have been taken.
    fn note_claimable(&mut self, now: Now) {
        self.backlog.look(now.wall);
        if let Some(not_before) = self.backlog.next_due() {
            self.wake_by(now.boot + until(now.wall, not_before));
        }
        for id in self.backlog.due().take(LOOK_AT_MAX) {
            self.claimable.entry(id).or_insert_with(|| Claimable::new(now.boot));
        }
    }

    /// What could be taken here, in the order of the queue.
    fn offers(&self, me: NodeId) -> Vec<Offer> {
        let free = |summary: &&Summary| {
            !self.attempts.contains_key(&summary.id) && !self.writes.is_claiming(summary.id)
        };
        let due = self.backlog.due().take(LOOK_AT_MAX);
        let queue = due.filter_map(|id| self.cache.task(id)).filter(free);
        let offer = |(place, summary)| self.offer(me, place, summary);
        queue.enumerate().filter_map(offer).collect()
    }

    fn offer(&self, me: NodeId, place: usize, summary: &Summary) -> Option<Offer> {
        let Claimable { since, rank } = self.claimable.get(&summary.id)?;
        let (since, rank) = (*since, (*rank.get_or_init(|| self.rank(me, summary)))?);
        let approach = Approach { rank, load: self.ledger.load(), step: self.meter.step() };
        let waiting =
            Waiting { task: summary.id, demand: summary.requirements.demand, since, rank };
        let ready_at = since + approach.delay(summary.id, me);
        Some(Offer { waiting, place, ready_at, priority: summary.priority })
    }

    fn rank(&self, me: NodeId, summary: &Summary) -> Option<usize> {
        let candidate = |node| Candidate::new(node, &summary.requirements, &summary.failed_hosts);
        let candidates: Vec<Candidate> = self.cache.nodes().filter_map(candidate).collect();
        rank(summary.id, me, candidates.iter().copied())
    }

    /// Nodes have changed, or this one has another id.
    pub(super) fn forget_ranks(&mut self) {
        for claimable in self.claimable.values_mut() {
            claimable.rank = OnceCell::new();
        }
    }

    /// The tasks to claim now, by request: bundled if there is plenty, else each alone.
    fn choose(&mut self, now: Now, offers: &[Offer]) -> Vec<Vec<TaskId>> {
        let (mut ready, later): (Vec<&Offer>, Vec<&Offer>) =
            offers.iter().partition(|offer| offer.ready_at <= now.boot);
        if let Some(at) = later.iter().map(|offer| offer.ready_at).min() {
            self.wake_by(at);
        }
        ready.sort_by_key(|offer| offer.order(now.boot));
        let fits = self.fitting(offers.iter()).len();
        let chosen = self.fitting(ready.into_iter());
        match claims_at_once(fits, offers.len()) {
            0 => Vec::new(),
            1 => chosen.into_iter().map(|id| vec![id]).collect(),
            bundle => vec![chosen.into_iter().take(bundle).collect()],
        }
    }

    /// Those of the offers that there is room for, one after the other.
    fn fitting<'a>(&self, offers: impl Iterator<Item = &'a Offer>) -> Vec<TaskId> {
        let mut ledger = self.ledger.clone();
        let mut fits = |offer: &&Offer| {
            let Waiting { task, demand, .. } = offer.waiting;
            self.hindered(offer, ledger.unmeasured_bytes()).is_none()
                && ledger.reserve(task, demand).is_ok()
        };
        offers.filter(|offer| fits(offer)).map(|offer| offer.waiting.task).collect()
    }

    /// What of the machine itself is against it, room or not, if it has promised so much memory since it
    /// was measured.
    fn hindered(&self, offer: &Offer, unmeasured_bytes: u64) -> Option<Hindrance> {
        let machine = self.machine.as_ref()?;
        let (demand, capacity) = (&offer.waiting.demand, &self.ledger.capacity());
        machine.admit(demand, unmeasured_bytes, capacity).err()
    }

    /// By the measurement alone: what is promised until the next one is no state of the machine to tell of.
    fn hindrance_of(&self, offers: &[Offer]) -> Option<Hindrance> {
        offers.iter().filter_map(|offer| self.hindered(offer, 0)).reduce(Hindrance::worse)
    }

    fn take(&mut self, now: Now, claimant: &Claimant, tasks: &[TaskId]) {
        let mut plans = Vec::new();
        for id in tasks {
            let Some(summary) = self.cache.task(*id) else { continue };
            // Before anything is sent, so that what is under way counts.
            if self.ledger.reserve(*id, summary.requirements.demand).is_err() {
                continue;
            }
            match self.cache.record(*id) {
                Some(record) => plans.extend(self.plan_claim(now, claimant, &record)),
                None => self.read(*id, WantedFor::Claim),
            }
        }
        self.send_claims(now, plans, claimant);
    }

    fn plan_claim(&mut self, now: Now, claimant: &Claimant, record: &Record) -> Option<Plan> {
        let stamp = Stamp { now: now.wall, write_id: self.ids.write() };
        let plan = claim(record, claimant, stamp).ok();
        if plan.is_none() {
            self.ledger.release(record.id());
        }
        plan
    }

    fn send_claims(&mut self, now: Now, plans: Vec<Plan>, claimant: &Claimant) {
        if plans.is_empty() {
            return;
        }
        self.asked.extend(plans.iter().map(|plan| (plan.id, now.boot)));
        let batch = Batch::of_claims(plans, claimant);
        self.send(batch.txn.clone(), Purpose::Claim { batch });
    }

    pub(super) fn on_read_for_claim(&mut self, now: Now, id: TaskId, record: Option<Record>) {
        let claimant = self.held_claimant(now).cloned().filter(|_| self.drain.is_none());
        let (Some(claimant), Some(record)) = (claimant, record) else {
            return self.ledger.release(id);
        };
        let plan = self.plan_claim(now, &claimant, &record);
        self.send_claims(now, plan.into_iter().collect(), &claimant);
    }

    /// Nothing was started for them, so nothing of the node is used.
    pub(super) fn drop_claims(&mut self) {
        for id in self.writes.drop_claims() {
            self.ledger.release(id);
        }
        self.asked.clear();
    }

    /// From asking to seeing the answer in the watch is how long others take to see it too.
    pub(super) fn measure_step(&mut self, now: Now, id: TaskId) {
        let Some(asked) = self.asked.remove(&id) else { return };
        let me = self.node_id();
        let summary = self.cache.task(id);
        if summary.is_some_and(|summary| me.is_some_and(|me| summary.is_running_on(me))) {
            self.meter.record(now.boot.since(asked));
        }
    }
}
