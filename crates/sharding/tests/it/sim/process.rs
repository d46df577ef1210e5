//! An instance process: the core, a cache, and the reconciles that run.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use sharding::core::history::{Fact, Violation, Worker};
use sharding::core::instance::{Command, Event, Identity, Instance, Options, Stop};
use sharding::core::names::InstanceId;
use sharding::core::object::{Object, ObjectName, Uid};
use sharding::core::time::Moment;

use super::Fault;
use super::sharders::names;
use super::world::{DURATION, Happening, News, Party, Request, World};
use chance::Chance;

const GRACE: Duration = Duration::from_secs(10);

pub(crate) struct Process {
    pub(crate) id: InstanceId,
    engine: Option<Instance>,
    pub(crate) life: u32,
    offset: Duration,
    skew_s: i64,
    pub(crate) paused_until: Duration,
    pub(crate) cut_until: Duration,
    pub(crate) wakes: Duration,
    pub(crate) waiting: VecDeque<News>,
    pub(crate) watched_until: Duration,
    cache: BTreeMap<ObjectName, Object>,
    /// The number of its watch: what an earlier one still delivers is not for us.
    pub(crate) watch: u32,
    runs: BTreeMap<ObjectName, Run>,
    next_run: u64,
    /// Whether its Lease is lost and it works on, by mistake.
    is_unfenced: bool,
    /// Writes that the server refused.
    pub(crate) refused: usize,
    /// Whether it is started in the same pod. In a new one, nothing but time tells that the process
    /// before has ended.
    pub(crate) keeps_pod: bool,
    /// Whether it is to be started again when it ends.
    pub(crate) is_wanted: bool,
}

struct Run {
    number: u64,
    uid: Uid,
    steps_left: usize,
    is_cancelled: bool,
}

// === impl Process ===

impl Process {
    pub(crate) fn new(number: usize, chance: &mut Chance) -> Self {
        let skew = i64::try_from(chance.below(61)).expect("small") - 30;
        Self {
            id: format!("site-controller-{number}").parse().expect("a label"),
            engine: None,
            life: 0,
            offset: chance.millis(0..1_000_000),
            skew_s: skew,
            paused_until: Duration::ZERO,
            cut_until: Duration::ZERO,
            wakes: Duration::ZERO,
            waiting: VecDeque::new(),
            watched_until: Duration::ZERO,
            cache: BTreeMap::new(),
            watch: 0,
            runs: BTreeMap::new(),
            next_run: 0,
            is_unfenced: false,
            refused: 0,
            keeps_pod: false,
            is_wanted: true,
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.engine.is_some()
    }

    pub(crate) fn worker(&self) -> Worker {
        Worker { id: self.id.clone(), incarnation: self.life.to_string() }
    }

    fn start(&mut self, now: Moment) {
        let identity = Identity {
            names: names(),
            id: self.id.clone(),
            namespace: "shop".to_owned(),
            incarnation: self.life.to_string(),
            pod: Some(if self.keeps_pod { "pod".to_owned() } else { self.life.to_string() }),
            weight: None,
        };
        let options = Options { identity, duration: DURATION, grace: GRACE };
        self.engine = Some(Instance::new(options, now));
    }
}

// === impl World ===

impl World {
    pub(crate) fn start_instance(&mut self, number: usize) -> Result<(), Violation> {
        let process = &self.processes[number];
        if process.is_up() || !process.is_wanted {
            return Ok(());
        }
        let now = self.clocks(process.offset, process.skew_s);
        self.processes[number].start(now.mono);
        self.look_later(number);
        self.tell_instance(number, News::Instance(Event::Tick))
    }

    pub(crate) fn tell_instance(&mut self, number: usize, news: News) -> Result<(), Violation> {
        let process = &mut self.processes[number];
        if !process.is_up() {
            return Ok(());
        }
        if process.paused_until > self.now {
            process.waiting.push_back(news);
            return Ok(());
        }
        match news {
            News::Instance(event) => self.tell_engine(number, event),
            News::Cache { watch, .. } if watch != process.watch => Ok(()),
            News::Cache { name, object: Some(object), .. } => {
                self.give_up_early(number, &object);
                let process = &mut self.processes[number];
                process.cache.insert(name, (*object).clone());
                self.tell_engine(number, Event::Seen(object))
            }
            News::Cache { name, object: None, .. } => {
                process.cache.remove(&name);
                self.tell_engine(number, Event::Left(name))
            }
            News::Step { name, run } => self.step(number, &name, run),
            News::Look => {
                self.look_later(number);
                self.look(number)
            }
            News::Sharder(_) => Ok(()),
        }
    }

    fn tell_engine(&mut self, number: usize, event: Event) -> Result<(), Violation> {
        let process = &mut self.processes[number];
        let (offset, skew_s) = (process.offset, process.skew_s);
        let now = self.clocks(offset, skew_s);
        let process = &mut self.processes[number];
        let Some(engine) = &mut process.engine else { return Ok(()) };
        let commands = engine.on(now, event);
        let wait = engine.wake_at(now.mono).since(now.mono).max(Duration::from_millis(1));
        process.wakes = self.now + wait;
        self.after(wait, Happening::Wake(Party::Instance(number)));
        for command in commands {
            self.carry_out_instance(number, command, now.mono)?;
        }
        Ok(())
    }

    fn carry_out_instance(
        &mut self,
        number: usize,
        command: Command,
        sent: Moment,
    ) -> Result<(), Violation> {
        match command {
            Command::Work => {
                self.list_own(number);
                Ok(())
            }
            Command::Cancel(name) => self.cancel(number, &name),
            Command::Lost(_) if self.plot.fault == Some(Fault::LossIgnored) => {
                self.processes[number].is_unfenced = true;
                Ok(())
            }
            Command::Lost(_) | Command::Left => self.end_process(number),
            command => {
                self.send(Party::Instance(number), Request::Instance { sent, command });
                Ok(())
            }
        }
    }

    /// Objects are listed when the Lease is held, and not before: the sharder may have moved some
    /// until then.
    fn list_own(&mut self, number: usize) {
        let process = &mut self.processes[number];
        let own = self.server.objects.values().filter(|it| it.shard.as_ref() == Some(&process.id));
        process.cache = own.map(|object| (object.name.clone(), object.clone())).collect();
        process.watch += 1;
    }

    /// The process ends, and is started again after a while.
    pub(crate) fn end_process(&mut self, number: usize) -> Result<(), Violation> {
        let process = &mut self.processes[number];
        let worker = process.worker();
        let runs = std::mem::take(&mut process.runs);
        process.engine = None;
        process.is_unfenced = false;
        process.life += 1;
        process.waiting.clear();
        process.cache.clear();
        process.paused_until = Duration::ZERO;
        for run in runs.into_values() {
            self.tell_history(Fact::Ended(run.uid, worker.clone()))?;
        }
        let wait = self.chance.millis(500..25_000);
        self.after(wait, Happening::Start(Party::Instance(number)));
        Ok(())
    }

    pub(crate) fn stop_process(&mut self, number: usize, stop: Stop) -> Result<(), Violation> {
        self.tell_instance(number, News::Instance(Event::Stop(stop)))
    }

    fn look_later(&mut self, number: usize) {
        let (to, life) = (Party::Instance(number), self.processes[number].life);
        let wait = self.chance.millis(100..1_500);
        self.after(wait, Happening::Tell { to, life, news: News::Look });
    }

    /// Begins a reconcile of some main object in the cache, if it may.
    fn look(&mut self, number: usize) -> Result<(), Violation> {
        let process = &self.processes[number];
        let now = self.clocks(process.offset, process.skew_s).mono;
        let main: Vec<&Object> =
            process.cache.values().filter(|object| object.controller.is_none()).collect();
        if main.is_empty() {
            return Ok(());
        }
        let object = main[self.chance.below(main.len())].clone();
        let process = &mut self.processes[number];
        let Some(engine) = &mut process.engine else { return Ok(()) };
        let may = process.is_unfenced || engine.begin(&object, now);
        if !may || process.runs.contains_key(&object.name) {
            return Ok(());
        }
        let is_long = self.chance.once_in(6);
        let steps_left = 1 + self.chance.below(if is_long { 60 } else { 5 });
        process.next_run += 1;
        let run = Run {
            number: process.next_run,
            uid: object.uid.clone(),
            steps_left,
            is_cancelled: false,
        };
        let (number_of_run, worker) = (run.number, process.worker());
        process.runs.insert(object.name.clone(), run);
        self.step_later(number, &object.name, number_of_run);
        self.tell_history(Fact::Began(object.uid, worker))
    }

    fn step_later(&mut self, number: usize, name: &ObjectName, run: u64) {
        let (to, life) = (Party::Instance(number), self.processes[number].life);
        let wait = self.chance.millis(20..500);
        let news = News::Step { name: name.clone(), run };
        self.after(wait, Happening::Tell { to, life, news });
    }

    fn step(&mut self, number: usize, name: &ObjectName, run: u64) -> Result<(), Violation> {
        let process = &mut self.processes[number];
        let (offset, skew_s) = (process.offset, process.skew_s);
        let now = self.clocks(offset, skew_s).mono;
        let process = &mut self.processes[number];
        let is_unchecked = process.is_unfenced || self.plot.fault == Some(Fault::NoPollCheck);
        let Some(engine) = &process.engine else { return Ok(()) };
        let may = is_unchecked || engine.may_go_on(now);
        let Some(current) = process.runs.get_mut(name).filter(|it| it.number == run) else {
            return Ok(());
        };
        if may && current.is_cancelled && self.plot.fault == Some(Fault::SeenBeforeStopped) {
            let news = Fact::Stepped(current.uid.clone(), process.worker());
            self.step_later(number, name, run);
            return self.tell_history(news);
        }
        if !may || current.steps_left == 0 || current.is_cancelled {
            return self.end_run(number, name);
        }
        current.steps_left -= 1;
        let (uid, worker) = (current.uid.clone(), process.worker());
        self.tell_history(Fact::Stepped(uid.clone(), worker))?;
        let children = self.server.children(None, &[uid].into());
        let target = match children.first() {
            Some(child) if self.chance.once_in(3) => child.name.clone(),
            _ => name.clone(),
        };
        self.send(Party::Instance(number), Request::Touch(target));
        self.step_later(number, name, run);
        Ok(())
    }

    /// The future is dropped; what it holds is gone a moment later.
    fn cancel(&mut self, number: usize, name: &ObjectName) -> Result<(), Violation> {
        if let Some(run) = self.processes[number].runs.get_mut(name) {
            run.is_cancelled = true;
        }
        if self.plot.fault == Some(Fault::SeenBeforeStopped) {
            return Ok(());
        }
        if self.chance.once_in(2) { self.end_run(number, name) } else { Ok(()) }
    }

    fn end_run(&mut self, number: usize, name: &ObjectName) -> Result<(), Violation> {
        let process = &mut self.processes[number];
        let Some(run) = process.runs.remove(name) else { return Ok(()) };
        let worker = process.worker();
        self.tell_history(Fact::Ended(run.uid, worker))?;
        self.tell_engine(number, Event::Ended(name.clone()))
    }

    /// A seeded bug: lets go at the first sight of a drain label, whatever runs.
    fn give_up_early(&mut self, number: usize, object: &Object) {
        let is_busy = self.processes[number].runs.contains_key(&object.name);
        if self.plot.fault != Some(Fault::AckWhileBusy) || object.drain.is_none() || !is_busy {
            return;
        }
        let process = &self.processes[number];
        let sent = self.clocks(process.offset, process.skew_s).mono;
        let (name, version) = (object.name.clone(), object.version.clone());
        let command = Command::Acknowledge { name, version };
        self.send(Party::Instance(number), Request::Instance { sent, command });
    }
}
