//! A sharder process: the core, its clocks, and what became of it.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use sharding::core::lease::Lease;
use sharding::core::names::{Dialect, Names};
use sharding::core::object::{Drain, LabelChange, Object, ObjectName};
use sharding::core::sharder::{Answer, Command, Event, News as Told, Options, Sharder};
use sharding::core::spec::{Handover, Partitioning};
use sharding::core::time::Now;

use super::Fault;
use super::server::Asker;
use super::world::{Happening, News, Party, ROUGH_UNTIL, Request, World, kinds};

/// Few slots, so that lives are short.
const SLOTS: usize = 64;
const HOLD_MAX: Duration = Duration::from_secs(120);

pub(crate) struct SharderProcess {
    engine: Sharder,
    pub(crate) life: u32,
    pub(crate) is_up: bool,
    offset: Duration,
    pub(crate) paused_until: Duration,
    pub(crate) cut_until: Duration,
    pub(crate) wakes: Duration,
    pub(crate) waiting: VecDeque<News>,
    /// The rest of a list.
    pub(crate) listed: Vec<Object>,
    /// When the last event of its watches arrives.
    pub(crate) watched_until: Duration,
    /// Pages it has asked for.
    pub(crate) pages: usize,
}

// === impl SharderProcess ===

impl SharderProcess {
    pub(crate) fn new(offset: Duration) -> Self {
        Self {
            engine: Sharder::new(options()),
            life: 0,
            is_up: false,
            offset,
            paused_until: Duration::ZERO,
            cut_until: Duration::ZERO,
            wakes: Duration::ZERO,
            waiting: VecDeque::new(),
            listed: Vec::new(),
            watched_until: Duration::ZERO,
            pages: 0,
        }
    }

    pub(crate) fn start(&mut self) {
        self.engine = Sharder::new(options());
        self.is_up = true;
    }

    pub(crate) fn crash(&mut self) {
        self.life += 1;
        self.is_up = false;
        self.waiting.clear();
        self.paused_until = Duration::ZERO;
    }

    pub(crate) fn engine(&self) -> &Sharder {
        &self.engine
    }
}

pub(crate) fn names() -> Names {
    let dialect = Dialect::Own { prefix: "windlass.dev".to_owned() };
    Names::new("sites".parse().expect("a label"), dialect)
}

fn options() -> Options {
    Options {
        names: names(),
        kinds: kinds(),
        handover: Handover { concurrent_moves: 6, ..Handover::default() },
        partitioning: Partitioning { slots: SLOTS, ..Partitioning::default() },
        hold_max: HOLD_MAX,
        leaving: BTreeSet::new(),
        home: "shop".to_owned(),
    }
}

// === impl World ===

impl World {
    pub(crate) fn tell_sharder(&mut self, number: usize, news: News) {
        let process = &mut self.sharders[number];
        if !process.is_up {
            return;
        }
        if process.paused_until > self.now {
            return process.waiting.push_back(news);
        }
        let News::Sharder(event) = news else { return };
        let now = self.sharder_clock(number);
        let process = &mut self.sharders[number];
        let commands = process.engine.on(now, event);
        let wake = process.engine.wake_at(now);
        let wait = wake.since(now.mono).max(Duration::from_millis(1));
        process.wakes = self.now + wait;
        self.after(wait, Happening::Wake(Party::Sharder(number)));
        for command in commands {
            self.carry_out_sharder(number, command);
        }
    }

    pub(crate) fn sharder_clock(&self, number: usize) -> Now {
        let offset = self.sharders[number].offset;
        self.clocks(offset, i64::from(offset > Duration::from_millis(500)))
    }

    fn carry_out_sharder(&mut self, number: usize, command: Command) {
        let party = Party::Sharder(number);
        self.sharders[number].pages += usize::from(matches!(command, Command::ListPage { .. }));
        match (&command, self.plot.fault) {
            // Where leaders overlap, what one has labelled may look to the other as anybody's.
            (Command::Tell(Told::Strayed { object, carries }), None) if !self.plot.is_rough => {
                panic!("{object} is told to be labelled for {carries} by somebody, and nobody does")
            }
            (Command::Tell(Told::Stuck { object, .. }), _) => {
                self.left_behind.insert(object.name.clone());
                return;
            }
            (Command::Tell(_), _) => return,
            (Command::WriteLease { token, lease, .. }, Some(Fault::DeadMoveWithoutHold))
                if is_acquired(lease) =>
            {
                let answer = Answer::Lease(lease.clone());
                let news = News::Sharder(Event::Answered { token: *token, answer });
                let life = self.life(party);
                let wait = Duration::from_millis(5);
                return self.after(wait, Happening::Tell { to: party, life, news });
            }
            // The longer it is under way, the more can have become of the Lease.
            (Command::WriteLease { lease, .. }, Some(Fault::UnguardedAcquire))
                if is_acquired(lease) =>
            {
                let wait = Duration::from_millis(2_900);
                return self.send_for(wait, party, Request::Sharder(command));
            }
            (
                Command::WriteObject { token, name, change: LabelChange::Shard(_), .. },
                Some(Fault::AssignsLate),
            ) if self.now < ROUGH_UNTIL && self.server.is_unassigned(name) => {
                let answer = Answer::Failed;
                let news = News::Sharder(Event::Answered { token: *token, answer });
                let life = self.life(party);
                let wait = Duration::from_millis(5);
                return self.after(wait, Happening::Tell { to: party, life, news });
            }
            (
                Command::WriteObject { name, change: LabelChange::Drain(_), .. },
                Some(Fault::ChildrenFirst),
            ) => {
                self.move_children(&name.clone());
            }
            _ => {}
        }
        self.send(party, Request::Sharder(command));
    }

    /// Gives the children of an object to anybody but its owner.
    fn move_children(&mut self, parent: &ObjectName) {
        let Some(parent) = self.server.objects.get(parent).cloned() else { return };
        let ids: Vec<_> = self.processes.iter().map(|process| process.id.clone()).collect();
        let other = ids.into_iter().find(|id| Some(id) != parent.shard.as_ref());
        let Some(to) = other else { return };
        for child in self.server.children(None, &[parent.uid].into()) {
            let change = LabelChange::Shard(to.clone());
            self.server
                .label(&Asker::Sharder, (&child.name, None), &change)
                .expect("the child was just seen");
        }
    }

    /// What the sharder is told instead.
    pub(crate) fn tampered(&self, mut answer: Answer) -> Answer {
        if let (Some(Fault::CountsNothing), Answer::Page { objects, .. }) =
            (self.plot.fault, &mut answer)
        {
            objects.clear();
        }
        if let (Some(Fault::ChildrenForgotten), Answer::Children(children)) =
            (self.plot.fault, &mut answer)
        {
            children.clear();
        }
        if self.plot.fault != Some(Fault::ForceBeforeDeadline) {
            return answer;
        }
        let hurry = |object: &mut Object| object.drain = object.drain.map(|_| Drain::Until(0));
        match &mut answer {
            Answer::Object(object) => hurry(object),
            Answer::Page { objects, .. } => objects.iter_mut().for_each(hurry),
            _ => {}
        }
        answer
    }
}

fn is_acquired(lease: &Lease) -> bool {
    lease.holder.as_deref() == Some(names().sharder_holder())
}
