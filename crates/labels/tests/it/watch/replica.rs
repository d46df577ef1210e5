//! One watcher as a process: the engine, and what its surroundings have in flight.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use jiff::{SignedDuration, Timestamp};
use labels::core::{
    checkpoint::Checkpoint,
    names::NodeHash,
    object::{Document, Uid},
    rv::ResourceVersion,
    transaction::Transaction,
    watch::{
        delivery::{Taken, on_taken, testimony},
        engine::{Engine, Turn, Upkeep},
        index::EventKind,
        post::{Content, Post},
        relist::Retention,
        resume::{self, Begin, Reason},
    },
};

use super::server::{Answer, Server, decoded};

const CHECKPOINT_DELAY: Duration = Duration::from_secs(5);

/// A mistake that a watcher could make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// What could not be posted is given up.
    SkipsFailedPosts,
    /// Keeps how far it read instead of how far it posted.
    KeepsWhatItRead,
    /// Begins at the server's position instead of the kept one.
    ForgetsToResume,
    /// Takes every taken name for its own transaction.
    BelievesEveryName,
    /// Believes the watch to go on although the server has forgotten what follows.
    NeverRelists,
    /// Takes an end that was read for one that was told, and removes its checkpoint.
    SweepsWhatItRead,
}

/// How a request ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fate {
    Answered,
    /// It was done, but nobody heard of it.
    AnswerLost,
    NotSent,
}

pub(super) struct Replica {
    pub(super) id: String,
    fault: Option<Fault>,
    /// Absent while the process is down.
    running: Option<Running>,
}

struct Running {
    engine: Engine,
    /// Where its watch is; nowhere before it has begun.
    position: Option<ResourceVersion>,
    in_flight: Vec<(Post, Option<Transaction>)>,
    ends_read: BTreeSet<Uid>,
}

// === impl Fault ===

impl Fault {
    pub(super) const ALL: [Self; 6] = [
        Self::SkipsFailedPosts,
        Self::KeepsWhatItRead,
        Self::ForgetsToResume,
        Self::BelievesEveryName,
        Self::NeverRelists,
        Self::SweepsWhatItRead,
    ];

    pub(super) fn needs_forgetting(self) -> bool {
        matches!(self, Self::BelievesEveryName | Self::NeverRelists | Self::SweepsWhatItRead)
    }
}

// === impl Replica ===

impl Replica {
    pub(super) fn new(id: &str, fault: Option<Fault>) -> Self {
        Self { id: id.to_owned(), fault, running: None }
    }

    pub(super) fn crash(&mut self) {
        self.running = None;
    }

    pub(super) fn watermark(&self) -> Option<&ResourceVersion> {
        self.running.as_ref()?.engine.watermark()
    }

    /// Whether everything is read and posted.
    pub(super) fn is_settled(&self, server: &Server) -> bool {
        let at_end = |running: &Running| {
            let position = running.position.as_ref();
            running.engine.is_idle()
                && position.is_some_and(|at| matches!(server.after(at), Ok(None)))
        };
        self.running.as_ref().is_some_and(at_end)
    }

    /// Reads one event, after having begun where it should.
    pub(super) fn read(&mut self, server: &Server, members: &[String], now: Instant) {
        let (id, fault) = (self.id.clone(), self.fault);
        let running = self.running.get_or_insert_with(|| Running::start(id, members, now));
        if running.position.is_none() {
            running.begin(server, fault, now);
        }
        let position = running.position.clone().expect("it has begun");
        match server.after(&position) {
            Ok(Some(event)) => {
                running.position = Some(event.node.rv.clone());
                if event.kind == EventKind::Deleted {
                    running.ends_read.insert(event.node.uid.clone());
                }
                running.engine.on_event(event, now);
            }
            Ok(None) => {
                running.position = Some(server.position());
                running.engine.on_bookmark(server.position());
            }
            Err(_) if fault == Some(Fault::NeverRelists) => {
                running.position = Some(server.position());
            }
            Err(_) => running.relist(server, Reason::Expired, now),
        }
    }

    pub(super) fn take_posts(&mut self, now: Instant) {
        let Some(running) = &mut self.running else { return };
        while let Some(turn) = running.engine.take_post(now) {
            if let Turn::Post(post) = turn {
                running.in_flight.push((post, None));
            }
        }
    }

    /// One step of one of the posts in flight.
    pub(super) fn post(&mut self, server: &mut Server, which: usize, fate: Fate) {
        let Some(running) = &mut self.running else { return };
        if running.in_flight.is_empty() {
            return;
        }
        let which = which % running.in_flight.len();
        let (post, begun) = running.in_flight.swap_remove(which);
        let transaction = begun.or_else(|| prepare(&post, server));
        let left =
            transaction.and_then(|transaction| attempt(server, transaction, fate, self.fault));
        match left {
            Some(_) if self.fault == Some(Fault::SkipsFailedPosts) => {
                running.engine.on_posted(&post)
            }
            Some(transaction) => running.in_flight.push((post, Some(transaction))),
            None => running.engine.on_posted(&post),
        }
    }

    pub(super) fn read_names(&mut self, server: &Server) {
        let Some(running) = &mut self.running else { return };
        running.engine.on_transactions_listed();
        for Transaction { name, .. } in &server.created {
            if server.queue.contains_key(&name.to_string()) {
                running.engine.on_transaction(name.clone());
            } else {
                running.engine.on_transaction_ended(name.clone());
            }
        }
    }

    pub(super) fn keep(&mut self, server: &mut Server, now: Instant) {
        let Some(running) = &mut self.running else { return };
        running.see_kept(server, now);
        let resume::Step::Write { position } = running.engine.take_step(now) else { return };
        let read = running.position.clone().filter(|_| self.fault == Some(Fault::KeepsWhatItRead));
        let over = server.kept.clone();
        server.keep(resume::encode(&read.unwrap_or(position)), over.as_ref());
    }

    /// Looks after one checkpoint.
    pub(super) fn save(&mut self, server: &mut Server, now: Instant) {
        let Some(running) = &mut self.running else { return };
        running.see_checkpoints(server);
        match running.engine.take_upkeep(now) {
            Some(Upkeep::Save { live, over }) => {
                let wanted = Checkpoint::of(&live).encode().expect("small");
                match server.save(wanted, over.as_ref()) {
                    Some(written) => running.engine.on_saved(decoded(&written), now),
                    None => running.engine.on_not_saved(&NodeHash::of(&live.name), true, now),
                }
            }
            Some(Upkeep::Remove(saved)) => server.remove(&saved),
            None => {}
        }
    }

    /// The hourly look, whenever it comes.
    pub(super) fn sweep(&mut self, server: &mut Server, now: Instant) {
        let Some(running) = &mut self.running else { return };
        if running.position.is_none() {
            return;
        }
        if self.fault == Some(Fault::SweepsWhatItRead) {
            server
                .checkpoints
                .retain(|_, document| !running.ends_read.contains(&decoded(document).meta.uid));
        }
        running.see_checkpoints(server);
        running.engine.on_swept(server.roll(), now);
    }
}

// === impl Running ===

impl Running {
    fn start(id: String, members: &[String], now: Instant) -> Self {
        let mut engine = Engine::new(id, CHECKPOINT_DELAY, now);
        engine.on_members(members.to_vec());
        Self { engine, position: None, in_flight: Vec::new(), ends_read: BTreeSet::new() }
    }

    fn begin(&mut self, server: &Server, fault: Option<Fault>, now: Instant) {
        let kept = server.kept.as_ref().and_then(|kept| resume::decode(kept).expect("we wrote it"));
        match resume::begin(kept, &server.position()) {
            Begin::Watch { .. } if fault == Some(Fault::ForgetsToResume) => {
                self.position = Some(server.position());
            }
            Begin::Watch { from } => self.position = Some(from),
            Begin::Relist(reason) => self.relist(server, reason, now),
        }
    }

    fn relist(&mut self, server: &Server, reason: Reason, now: Instant) {
        let listing = server.listing();
        self.position = Some(listing.position.clone());
        let retention =
            Retention { period: SignedDuration::from_hours(24), now: Timestamp::UNIX_EPOCH };
        self.engine.on_relisted(listing, reason, retention, now);
    }

    fn see_kept(&mut self, server: &Server, now: Instant) {
        let kept = server.kept.as_ref().and_then(|kept| resume::decode(kept).expect("we wrote it"));
        self.engine.on_resume(kept, now);
    }

    fn see_checkpoints(&mut self, server: &Server) {
        let all = server.checkpoints.values().map(decoded);
        self.engine.on_checkpoints(all.collect());
    }
}

fn prepare(post: &Post, server: &Server) -> Option<Transaction> {
    match &post.content {
        Content::Transaction(transaction) => Some((**transaction).clone()),
        Content::Checkpoint { uid } => {
            let document = server.checkpoints.get(&post.node.to_string());
            testimony(document, &post.node, uid).expect("we wrote it")
        }
    }
}

/// What is left to post.
fn attempt(
    server: &mut Server,
    transaction: Transaction,
    fate: Fate,
    fault: Option<Fault>,
) -> Option<Transaction> {
    let answer = match fate {
        Fate::NotSent => return Some(transaction),
        Fate::Answered | Fate::AnswerLost => server.post(&transaction),
    };
    match (fate, answer) {
        (Fate::AnswerLost, _) => Some(transaction),
        (_, Answer::Done) => None,
        (_, Answer::Refused) if fault == Some(Fault::BelievesEveryName) => None,
        (_, Answer::Refused) => {
            let found: Option<Document> = server.queue.get(&transaction.name.to_string()).cloned();
            match on_taken(transaction, found.as_ref()) {
                Taken::Done => None,
                Taken::Again(again) => Some(*again),
            }
        }
    }
}
