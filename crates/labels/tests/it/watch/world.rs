//! Three nodes, two watchers and a server; what happens to them, and what has to hold.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use labels::core::{
    names::{NodeHash, TransactionName},
    rv::ResourceVersion,
    transaction::{Source, Transaction},
    watch::index::{EventKind, NodeEvent},
};
use proptest::{collection::vec, prelude::*};

use super::{
    replica::{Fate, Fault, Replica},
    server::Server,
};

const NODES: [&str; 3] = ["a", "b", "c"];
const REPLICAS: [&str; 2] = ["w0", "w1"];

/// Rounds after which whatever can settle has.
const ROUNDS_MAX: usize = 500;

/// Rounds in which nothing may be left to do: longer than a checkpoint waits.
const ROUNDS_QUIET: usize = 10;

/// Anything that can happen next.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Change { node: usize, kind: EventKind, label: u8 },
    Read { replica: usize },
    TakePosts { replica: usize },
    Post { replica: usize, which: usize, fate: Fate },
    ReadNames { replica: usize },
    Keep { replica: usize },
    Save { replica: usize },
    Sweep { replica: usize },
    Crash { replica: usize },
    WorkOff { which: usize },
    Wait { ms: u64 },
    Forget,
}

pub(super) struct World {
    server: Server,
    replicas: Vec<Replica>,
    now: Instant,
    /// Where the first watcher began; what happened before is not its business.
    began: ResourceVersion,
    has_forgotten: bool,
}

pub(super) fn steps() -> BoxedStrategy<Vec<Step>> {
    vec(step(), 0..120).boxed()
}

pub(super) fn steps_that_forget() -> BoxedStrategy<Vec<Step>> {
    vec(prop_oneof![15 => step(), 1 => Just(Step::Forget)], 0..160).boxed()
}

fn step() -> BoxedStrategy<Step> {
    let replica = 0..REPLICAS.len();
    let kind =
        prop_oneof![Just(EventKind::Added), Just(EventKind::Modified), Just(EventKind::Deleted)];
    let fate = prop_oneof![3 => Just(Fate::Answered), 1 => Just(Fate::AnswerLost), 1 => Just(Fate::NotSent)];
    let change = (0..NODES.len(), kind, 0..5_u8);
    prop_oneof![
        6 => change.prop_map(|(node, kind, label)| Step::Change { node, kind, label }),
        6 => replica.clone().prop_map(|replica| Step::Read { replica }),
        4 => replica.clone().prop_map(|replica| Step::TakePosts { replica }),
        4 => (replica.clone(), 0..8_usize, fate)
            .prop_map(|(replica, which, fate)| Step::Post { replica, which, fate }),
        2 => replica.clone().prop_map(|replica| Step::ReadNames { replica }),
        2 => replica.clone().prop_map(|replica| Step::Keep { replica }),
        2 => replica.clone().prop_map(|replica| Step::Save { replica }),
        1 => replica.clone().prop_map(|replica| Step::Sweep { replica }),
        1 => replica.prop_map(|replica| Step::Crash { replica }),
        1 => (0..8_usize).prop_map(|which| Step::WorkOff { which }),
        2 => (0..15_000_u64).prop_map(|ms| Step::Wait { ms }),
    ]
    .boxed()
}

// === impl World ===

impl World {
    /// One watcher has begun and kept its position, as after a first start.
    pub(super) fn new(fault: Option<Fault>) -> Self {
        let mut world = Self {
            server: Server::default(),
            replicas: REPLICAS.iter().map(|id| Replica::new(id, fault)).collect(),
            now: tokio::time::Instant::now().into_std(),
            began: "1".parse().expect("a number"),
            has_forgotten: false,
        };
        world.play(&Step::Read { replica: 0 });
        world.play(&Step::Keep { replica: 0 });
        world
    }

    pub(super) fn play(&mut self, step: &Step) {
        let (server, now) = (&mut self.server, self.now);
        match *step {
            Step::Change { node, kind, label } => server.change(NODES[node], kind, label),
            Step::Read { replica } => {
                let members: Vec<_> = self.replicas.iter().map(|one| one.id.clone()).collect();
                self.replicas[replica].read(server, &members, now);
            }
            Step::TakePosts { replica } => self.replicas[replica].take_posts(now),
            Step::Post { replica, which, fate } => {
                self.replicas[replica].post(server, which, fate);
            }
            Step::ReadNames { replica } => self.replicas[replica].read_names(server),
            Step::Keep { replica } => self.replicas[replica].keep(server, now),
            Step::Save { replica } => self.replicas[replica].save(server, now),
            Step::Sweep { replica } => self.replicas[replica].sweep(server, now),
            Step::Crash { replica } => self.replicas[replica].crash(),
            Step::WorkOff { which } => server.work_off(which),
            Step::Wait { ms } => self.now += Duration::from_millis(ms),
            Step::Forget => {
                server.forget();
                self.has_forgotten = true;
            }
        }
    }

    /// Nothing happens any more, and every watcher is up and answered.
    pub(super) fn settle(&mut self) {
        let mut quiet = 0;
        for _ in 0..ROUNDS_MAX {
            for replica in 0..REPLICAS.len() {
                self.play(&Step::Read { replica });
                self.play(&Step::TakePosts { replica });
                self.play(&Step::Post { replica, which: 0, fate: Fate::Answered });
                self.play(&Step::Save { replica });
            }
            self.play(&Step::Wait { ms: 1_000 });
            let is_quiet = self.replicas.iter().all(|one| one.is_settled(&self.server));
            quiet = if is_quiet { quiet + 1 } else { 0 };
            if quiet > ROUNDS_QUIET {
                return;
            }
        }
    }

    /// What holds after every step.
    pub(super) fn check(&self) -> Result<(), String> {
        // Who lists instead of reading goes ahead of who still has to post what it read.
        if !self.has_forgotten {
            self.check_watermarks()?;
            self.check_order()?;
        }
        self.check_once()
    }

    /// What holds once everything has settled.
    pub(super) fn check_end(&self) -> Result<(), String> {
        if let Some(busy) = self.replicas.iter().find(|one| !one.is_settled(&self.server)) {
            return Err(format!("{} has not settled", busy.id));
        }
        if !self.has_forgotten {
            self.check_all_posted()?;
        }
        self.check_labels()
    }

    fn check_watermarks(&self) -> Result<(), String> {
        for replica in &self.replicas {
            let Some(watermark) = replica.watermark() else { continue };
            let passed = |event: &&NodeEvent| event.node.rv <= *watermark;
            if let Some(event) = self.wanted().filter(passed).find(|event| !self.is_posted(event)) {
                return Err(format!("{} is at {watermark}, past {event:?}", replica.id));
            }
        }
        Ok(())
    }

    fn check_all_posted(&self) -> Result<(), String> {
        match self.wanted().find(|event| !self.is_posted(event)) {
            Some(event) => Err(format!("nobody posted {event:?}")),
            None => Ok(()),
        }
    }

    /// Of what was seen, the first posts of a node come in the order of its events. An end told from a
    /// checkpoint may have had the name of the arrival: an arrival that comes after it is no first.
    fn check_order(&self) -> Result<(), String> {
        let mut last: BTreeMap<&NodeHash, &ResourceVersion> = BTreeMap::new();
        let mut known: Vec<&TransactionName> = Vec::new();
        for Transaction { name, source, .. } in &self.server.created {
            let is_first = !known.contains(&name);
            known.push(name);
            if !is_first || *source != Some(Source::Watch) {
                continue;
            }
            let before = last.insert(name.node(), name.rv());
            if before.is_some_and(|before| before > name.rv()) {
                return Err(format!("{name} came after {before:?}"));
            }
        }
        Ok(())
    }

    /// Nothing is queued twice, unless it was worked off in between.
    fn check_once(&self) -> Result<(), String> {
        for Transaction { name, .. } in &self.server.created {
            let created = self.server.created.iter().filter(|other| other.name == *name).count();
            let name = name.to_string();
            let worked_off = self.server.worked_off.iter().filter(|other| **other == name).count();
            if created > worked_off + 1 {
                return Err(format!("{name} was created {created} times"));
            }
        }
        Ok(())
    }

    /// Every end that left something behind is told with the labels of its time.
    fn check_labels(&self) -> Result<(), String> {
        let Server { lives, events, created, .. } = &self.server;
        for (uid, life) in lives.iter().filter(|(uid, life)| life.is_over(events, uid)) {
            let mut told = created.iter().filter(|one| one.uid.as_ref() == Some(uid));
            let is_told = told.any(|transaction| life.is_told_by(transaction));
            let is_promised = life.covered.is_some() || !self.has_forgotten;
            if is_promised && !is_told {
                return Err(format!("the end of {uid} is not told as of {:?}", life.covered));
            }
        }
        Ok(())
    }

    /// The events that ask for a transaction.
    fn wanted(&self) -> impl Iterator<Item = &NodeEvent> {
        let asks =
            |event: &&NodeEvent| event.kind != EventKind::Modified && event.node.rv > self.began;
        self.server.events.iter().filter(asks)
    }

    fn is_posted(&self, event: &NodeEvent) -> bool {
        let hash = NodeHash::of(&event.node.name);
        let name = TransactionName::new(hash, event.node.rv.clone());
        self.server.created.iter().any(|transaction| transaction.name == name)
    }
}
