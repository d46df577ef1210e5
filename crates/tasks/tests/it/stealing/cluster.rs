//! Nodes that see queued tasks after a lag, wait as the core says, and ask a store that serves one
//! request at a time. Only what stealing needs: nobody fails here.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tasks::core::admission::Ledger;
use tasks::core::amounts::Amounts;
use tasks::core::id::{NodeId, TaskId};
use tasks::core::rank::{Candidate, rank};
use tasks::core::steal::{Approach, LOAD_DELAY, STEP_START, claims_at_once};
use uuid::Uuid;

use chance::Chance;

const ROUND_TRIP: Duration = Duration::from_millis(3);

/// What a task asks for: one slot.
const SLOT: Amounts = Amounts { cpu_millis: 100, memory_bytes: 0, pids: 0, disk_bytes: 0 };

pub(crate) struct Setting {
    pub(crate) policy: Policy,
    /// How many tasks each node runs at once.
    pub(crate) slots: Vec<u32>,
    pub(crate) tasks: usize,
    pub(crate) per_second: u64,
    pub(crate) run: Duration,
    pub(crate) store_op: Duration,
    pub(crate) seed: u64,
}

/// How long nodes wait before they ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Not at all.
    Race,
    /// By their load.
    Load,
    /// As the core says.
    Rank,
}

#[derive(Debug)]
pub(crate) struct Figures {
    pub(crate) started: usize,
    pub(crate) wasted_per_task: f64,
    pub(crate) start_p50: Duration,
    pub(crate) start_p99: Duration,
    pub(crate) makespan: Duration,
    /// Jain's index of tasks per slot: 1 if every slot did the same.
    pub(crate) fairness: f64,
}

struct Cluster<'s> {
    setting: &'s Setting,
    chance: Chance,
    now: Duration,
    agenda: BTreeMap<(Duration, u64), Happening>,
    noted: u64,
    nodes: Vec<Node>,
    submitted: Vec<Duration>,
    taken: BTreeMap<usize, usize>,
    /// When the store is done with what it has been asked.
    store_free: Duration,
    wasted: usize,
    waits: Vec<Duration>,
}

struct Node {
    ledger: Ledger,
    /// The queue as this node sees it.
    seen: BTreeMap<usize, Seen>,
    /// Tasks that it saw go.
    gone: BTreeSet<usize>,
    asked: BTreeSet<usize>,
    done: usize,
}

#[derive(Clone, Copy)]
struct Seen {
    at: Duration,
    rank: usize,
}

enum Happening {
    Submit(usize),
    See { node: usize, task: usize },
    Gone { node: usize, task: usize },
    Look { node: usize },
    Arrive { node: usize, tasks: Vec<usize> },
    Answer { node: usize, won: Vec<usize>, lost: Vec<usize> },
    End { node: usize, task: usize },
}

pub(crate) fn run(setting: &Setting) -> Figures {
    let mut cluster = Cluster::new(setting);
    while let Some(((at, _), happening)) = cluster.agenda.pop_first() {
        cluster.now = at;
        cluster.happen(happening);
    }
    cluster.figures()
}

fn node_id(number: usize) -> NodeId {
    NodeId(Uuid::new_v5(&Uuid::from_u128(1), &number.to_be_bytes()))
}

fn task_id(number: usize) -> TaskId {
    TaskId(Uuid::new_v5(&Uuid::from_u128(2), &number.to_be_bytes()))
}

// === impl Cluster ===

impl<'s> Cluster<'s> {
    fn new(setting: &'s Setting) -> Self {
        let node = |slots: &u32| Node {
            ledger: Ledger::new(Amounts { cpu_millis: u64::from(*slots) * 100, ..SLOT }),
            seen: BTreeMap::new(),
            gone: BTreeSet::new(),
            asked: BTreeSet::new(),
            done: 0,
        };
        let mut cluster = Self {
            setting,
            chance: Chance::new(setting.seed),
            now: Duration::ZERO,
            agenda: BTreeMap::new(),
            noted: 0,
            nodes: setting.slots.iter().map(node).collect(),
            submitted: Vec::new(),
            taken: BTreeMap::new(),
            store_free: Duration::ZERO,
            wasted: 0,
            waits: Vec::new(),
        };
        cluster.submit_all();
        cluster
    }

    /// At random moments with the given mean, or all at once.
    fn submit_all(&mut self) {
        let mean = 1_000_000_u64.checked_div(self.setting.per_second).unwrap_or(0);
        let mut at = Duration::ZERO;
        for task in 0..self.setting.tasks {
            at += if mean == 0 { Duration::ZERO } else { self.chance.micros(0..2 * mean) };
            self.submitted.push(at);
            self.after(at, Happening::Submit(task));
        }
    }

    fn after(&mut self, wait: Duration, happening: Happening) {
        self.noted += 1;
        self.agenda.insert((self.now + wait, self.noted), happening);
    }

    fn watch_lag(&mut self) -> Duration {
        self.chance.micros(500..4_000)
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Submit(task) => {
                for node in 0..self.nodes.len() {
                    let wait = self.watch_lag();
                    self.after(wait, Happening::See { node, task });
                }
            }
            Happening::See { node, task } => {
                if !self.nodes[node].gone.contains(&task) {
                    let seen = Seen { at: self.now, rank: self.rank(node, task) };
                    self.nodes[node].seen.insert(task, seen);
                    self.look(node);
                }
            }
            Happening::Gone { node, task } => {
                self.nodes[node].seen.remove(&task);
                self.nodes[node].gone.insert(task);
            }
            Happening::Look { node } => self.look(node),
            Happening::Arrive { node, tasks } => self.arrive(node, &tasks),
            Happening::Answer { node, won, lost } => self.answered(node, &won, &lost),
            Happening::End { node, task } => {
                self.nodes[node].ledger.release(task_id(task));
                self.look(node);
            }
        }
    }

    fn rank(&self, node: usize, task: usize) -> usize {
        if self.setting.policy != Policy::Rank {
            return 1;
        }
        let numbered = self.setting.slots.iter().enumerate();
        let candidates = numbered.map(|(number, slots)| Candidate {
            node: node_id(number),
            weight: u64::from(*slots),
            has_failed: false,
        });
        rank(task_id(task), node_id(node), candidates).expect("every node is a candidate")
    }

    fn ready_at(&self, node: usize, task: usize, seen: Seen) -> Duration {
        let load = self.nodes[node].ledger.load();
        seen.at
            + match self.setting.policy {
                Policy::Race => Duration::ZERO,
                Policy::Load => LOAD_DELAY.mul_f64(load),
                Policy::Rank => Approach { rank: seen.rank, load, step: STEP_START }
                    .delay(task_id(task), node_id(node)),
            }
    }

    /// Claims what there is room for and whose time has come.
    fn look(&mut self, node: usize) {
        let free = self.nodes[node].ledger.free().cpu_millis / SLOT.cpu_millis;
        let fits = usize::try_from(free).expect("small");
        if fits == 0 {
            return;
        }
        let queue = &self.nodes[node].seen;
        let open = queue.iter().filter(|(task, _)| !self.nodes[node].asked.contains(task));
        let offers: Vec<(usize, Duration, usize)> = open
            .map(|(task, seen)| (*task, self.ready_at(node, *task, *seen), seen.rank))
            .collect();
        let mut ready: Vec<_> = offers.iter().filter(|(_, ready, _)| *ready <= self.now).collect();
        ready.sort_by_key(|(_, _, rank)| *rank);
        let chosen: Vec<usize> = ready.iter().take(fits).map(|(task, ..)| *task).collect();
        let next = offers.iter().map(|(_, ready, _)| *ready).filter(|at| *at > self.now).min();
        match claims_at_once(fits, offers.len()) {
            0 | 1 => chosen.into_iter().for_each(|task| self.ask(node, vec![task])),
            bundle if !chosen.is_empty() => {
                self.ask(node, chosen.into_iter().take(bundle).collect());
            }
            _ => {}
        }
        if let Some(at) = next {
            self.after(at - self.now, Happening::Look { node });
        }
    }

    fn ask(&mut self, node: usize, tasks: Vec<usize>) {
        for task in &tasks {
            let asked = &mut self.nodes[node];
            asked.ledger.reserve(task_id(*task), SLOT).expect("there is room");
            asked.asked.insert(*task);
        }
        self.after(ROUND_TRIP / 2, Happening::Arrive { node, tasks });
    }

    fn arrive(&mut self, node: usize, tasks: &[usize]) {
        let asked = u32::try_from(tasks.len()).expect("small");
        self.store_free = self.store_free.max(self.now) + self.setting.store_op * asked;
        let served = self.store_free - self.now;
        let (won, lost): (Vec<usize>, Vec<usize>) =
            tasks.iter().partition(|task| !self.taken.contains_key(task));
        for task in &won {
            self.taken.insert(*task, node);
            for other in 0..self.nodes.len() {
                let wait = served + self.watch_lag();
                self.after(wait, Happening::Gone { node: other, task: *task });
            }
        }
        self.after(served + ROUND_TRIP / 2, Happening::Answer { node, won, lost });
    }

    fn answered(&mut self, node: usize, won: &[usize], lost: &[usize]) {
        for task in won {
            self.waits.push(self.now - self.submitted[*task]);
            self.nodes[node].done += 1;
            self.after(self.setting.run, Happening::End { node, task: *task });
        }
        for task in lost {
            self.wasted += 1;
            self.nodes[node].ledger.release(task_id(*task));
            self.nodes[node].seen.remove(task);
        }
        self.look(node);
    }

    #[expect(clippy::cast_precision_loss, reason = "thousands of tasks")]
    fn figures(mut self) -> Figures {
        self.waits.sort_unstable();
        let percentile = |percent: usize| self.waits[(self.waits.len() - 1) * percent / 100];
        let shares = self.nodes.iter().zip(&self.setting.slots);
        let shares: Vec<f64> =
            shares.map(|(node, slots)| node.done as f64 / f64::from(*slots)).collect();
        let (sum, squares) =
            (shares.iter().sum::<f64>(), shares.iter().map(|x| x * x).sum::<f64>());
        Figures {
            started: self.waits.len(),
            wasted_per_task: self.wasted as f64 / self.setting.tasks as f64,
            start_p50: percentile(50),
            start_p99: percentile(99),
            makespan: self.now,
            fairness: sum * sum / (shares.len() as f64 * squares),
        }
    }
}
