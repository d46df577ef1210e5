//! Several processors before the same transactions, on a clock that counts milliseconds: how often
//! one asks for a lock that another has.

use std::collections::BTreeMap;

use super::*;

const PROCESSORS: usize = 4;
const WORKERS: usize = 16;

/// How long a turn takes, lock and all.
const TURN_MS: u64 = 20;

/// How long the watch takes to tell.
const WATCH_MS: u64 = 5;

struct Processor {
    scene: Scene,
    name: String,
    /// What its workers are at, and until when.
    busy: Vec<(u64, NodeHash, TurnEnd)>,
}

/// What the API server has.
#[derive(Default)]
struct Server {
    locks: BTreeMap<NodeHash, String>,
    /// Gone, and when everyone has heard of it.
    gone: Vec<(u64, TransactionName)>,
    asked: usize,
    refused: usize,
}

/// How many nodes were done, locks asked for, and locks refused, when a node becomes ready every
/// `every_ms`.
fn run(nodes: u64, every_ms: u64, talks: bool) -> [usize; 3] {
    let mut processors: Vec<Processor> = (0..PROCESSORS).map(Processor::new).collect();
    let mut server = Server::default();
    let mut done = 0;
    for now in 0..nodes * every_ms + 10_000 {
        // None of them is always the first to hear.
        processors.rotate_left(1);
        let told: Vec<_> = server.gone.extract_if(.., |(at, _)| *at <= now).collect();
        for processor in &mut processors {
            for (_, name) in &told {
                processor.scene.queue.on_gone(name, Some(&uid("1")));
            }
            if let Some(node) = node_at(now, nodes, every_ms) {
                let at = processor.scene.at(now);
                processor.scene.queue.on_seen(seen(&node, "1"), at);
            }
            done += processor.finish(&mut server, now);
            processor.begin(&mut server, now, talks);
        }
    }
    [done, server.asked, server.refused]
}

/// The node that becomes ready now, if one does.
fn node_at(now: u64, nodes: u64, every_ms: u64) -> Option<String> {
    let is_time = now.is_multiple_of(every_ms) && now / every_ms < nodes;
    is_time.then(|| format!("node-{now}"))
}

// === impl Processor ===

impl Processor {
    fn new(number: usize) -> Self {
        let name = format!("processor-{number}");
        Self { scene: Scene::new(Queue::new(&name)), name, busy: Vec::new() }
    }

    /// How many transactions were worked off by turns that end now.
    fn finish(&mut self, server: &mut Server, now: u64) -> usize {
        let ended: Vec<_> = self.busy.extract_if(.., |(until, ..)| *until <= now).collect();
        let mut done = 0;
        for (_, hash, end) in ended {
            if end == TurnEnd::Done {
                for entry in self.scene.queue.batch(&hash).entries {
                    self.scene.queue.on_gone(&entry.name, Some(&uid("1")));
                    server.gone.push((now + WATCH_MS, entry.name));
                    done += 1;
                }
                server.locks.remove(&hash);
            }
            self.scene.release(&hash, end, now);
        }
        done
    }

    fn begin(&mut self, server: &mut Server, now: u64, talks: bool) {
        while self.busy.len() < WORKERS
            && let Some(hash) = self.scene.pick(now)
        {
            server.asked += 1;
            match server.locks.get(&hash).cloned() {
                None => {
                    server.locks.insert(hash.clone(), self.name.clone());
                    self.busy.push((now + TURN_MS, hash, TurnEnd::Done));
                }
                Some(holder) => {
                    server.refused += 1;
                    if talks {
                        self.scene.queue.on_met(&holder, self.scene.at(now));
                    }
                    self.busy.push((now + 1, hash, TurnEnd::Refused));
                }
            }
        }
    }
}

#[test]
fn who_have_met_rarely_ask_for_the_same_lock() {
    let [done, asked, refused] = run(1000, 9, true);
    assert!(done >= 1000, "{done} done");
    assert!(refused < 30, "{refused} of {asked} refused");
}

#[test]
fn who_never_learn_of_each_other_ask_for_every_lock() {
    let [done, asked, refused] = run(1000, 9, false);
    assert!(done >= 1000, "{done} done");
    assert!(refused > 1000, "{refused} of {asked} refused: the test above shows nothing");
}
