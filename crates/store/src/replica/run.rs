//! The thread that looks after the role: it follows the journal, or holds the role and asks the
//! journal whether it still does.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, SyncSender},
    },
    time::Duration,
};

use etcd_api::ApiError;
use journal::{Epoch, Shared, Tip};
use tokio::sync::oneshot;

use super::{
    Mirror, Question,
    hold::{Held, TakeError},
    pace::Pace,
};
use crate::{
    Error, context::Context, lifecycle::StopError, load::LoadError, published::Published,
    watch::Feed,
};

/// How often a holder does: its writes ask anyway.
const HOLD_EVERY: Duration = Duration::from_millis(500);
/// How soon a holder looks again whether what the journal has is shown here too: a batch is shown
/// right after it is durable.
const SHOW_EVERY: Duration = Duration::from_millis(1);
/// How long to leave a journal alone that could not be read.
const PAUSE: Duration = Duration::from_millis(200);

/// What a replica is made of.
pub(crate) struct Parts {
    pub(crate) context: Arc<Context>,
    pub(crate) feed: Arc<Feed>,
    pub(crate) questions: Receiver<Question>,
    /// Lets the others hear at once of what has changed.
    pub(crate) beats: SyncSender<()>,
}

pub(crate) struct Replica {
    parts: Parts,
    mirror: Mirror,
    is_cut_off: bool,
    /// Whether the end came while the journal could not be read.
    is_ending: bool,
}

/// Why a replica cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ReplicaError {
    #[error("the journal cannot be followed")]
    Follow {
        #[source]
        source: Box<LoadError>,
    },
    #[error("the threads that write could not be started")]
    Threads {
        #[source]
        source: Box<StopError>,
    },
}

type Waiter = oneshot::Sender<Result<(), Error>>;

/// What came in since the last look.
#[derive(Default)]
struct Asked {
    waiters: Vec<Waiter>,
    /// Who wants this member to take the role.
    takers: Vec<Waiter>,
    claim: Option<Epoch>,
    is_stop: bool,
    /// Whether nothing came, and the time was up.
    is_own_accord: bool,
}

/// Readers at a holder whose journal has more than is shown here. A batch is durable before it is
/// shown, and between the two others may have read it already.
#[derive(Default)]
struct Unshown(VecDeque<(Tip, Vec<Waiter>)>);

/// That the role should be taken now.
struct Turn {
    after: Epoch,
    /// Who asked for it, and hears of its end.
    takers: Vec<Waiter>,
}

// === impl Replica ===

impl Replica {
    pub(crate) fn new(parts: Parts, mirror: Mirror) -> Self {
        Self { parts, mirror, is_cut_off: false, is_ending: false }
    }

    /// Works until told to stop.
    pub(crate) fn run(mut self) -> Result<(), ReplicaError> {
        let journal = self.parts.context.journal.clone();
        let Some(shared) = journal.shared() else { return Ok(()) };
        while let Some(turn) = self.follow(shared)? {
            if self.take(shared, turn)? {
                return Ok(());
            }
            self.reload(shared)?;
        }
        hurry_unless_reached(shared);
        Ok(())
    }

    /// Follows until the role should be taken, or, with nothing, until the end.
    fn follow(&mut self, shared: &dyn Shared) -> Result<Option<Turn>, ReplicaError> {
        let (mut pace, mut wait) = (Pace::default(), Duration::ZERO);
        while !self.is_ending {
            let asked = self.parts.wait(wait);
            if asked.is_stop {
                return Ok(None);
            }
            let known = self.mirror.known();
            let (tip, answer) = match self.catch_up(shared) {
                Ok(tip) => (Some(tip), Ok(())),
                Err(LoadError::Read { source }) => {
                    self.on_unread(source, shared)?;
                    (None, Err(ApiError::NoLeader))
                }
                Err(source) => return Err(ReplicaError::Follow { source: source.into() }),
            };
            answer_all(asked.waiters, answer);
            if asked.is_own_accord {
                pace.on_own_look(self.mirror.known() != known);
            }
            wait = if tip.is_some() { pace.wait() } else { PAUSE };
            let Some(Tip { epoch, .. }) = tip else {
                answer_all(asked.takers, Err(ApiError::NoLeader));
                continue;
            };
            // Whoever was silent when the claim was asked for may have been replaced since.
            if asked.claim == Some(epoch) || !asked.takers.is_empty() {
                return Ok(Some(Turn { after: epoch, takers: asked.takers }));
            }
        }
        Ok(None)
    }

    fn catch_up(&mut self, shared: &dyn Shared) -> Result<Tip, LoadError> {
        let Parts { context, feed, .. } = &self.parts;
        let tip = shared.tip().map_err(|source| LoadError::Read { source })?;
        self.mirror.follow(tip, shared, context, feed)?;
        if context.standing.term() != tip.epoch {
            context.standing.follow(tip.epoch);
            // Where the new holder is, the next beat tells. A full queue is that of one that is about to.
            self.parts.beats.try_send(()).ok();
        }
        if std::mem::replace(&mut self.is_cut_off, false) {
            tracing::info!(revision = tip.revision.0, "the journal is followed again");
        }
        Ok(tip)
    }

    /// What cannot be reached may come back; what is damaged does not mend.
    fn on_unread(
        &mut self,
        error: journal::Error,
        shared: &dyn Shared,
    ) -> Result<(), ReplicaError> {
        match error {
            journal::Error::Unavailable { .. } => {
                self.on_cut_off(&error);
                Ok(())
            }
            journal::Error::Forgotten { revision } => {
                tracing::warn!(%revision, "fell behind a compaction: everything is read again");
                self.reload(shared)
            }
            source => {
                let source = LoadError::Read { source };
                Err(ReplicaError::Follow { source: source.into() })
            }
        }
    }

    /// Said once, until the journal is back.
    fn on_cut_off(&mut self, error: &journal::Error) {
        if !std::mem::replace(&mut self.is_cut_off, true) {
            let error: &dyn std::error::Error = error;
            tracing::warn!(error, "the journal cannot be reached for now");
        }
    }

    /// Reads everything anew. Watches read what they have missed from history.
    fn reload(&mut self, shared: &dyn Shared) -> Result<(), ReplicaError> {
        let (context, feed) = (self.parts.context.clone(), self.parts.feed.clone());
        loop {
            match Mirror::load(&*context.journal, shared) {
                Ok(mut mirror) => {
                    mirror.auth = mirror.auth.following(&context.gate.state());
                    mirror.show(&context);
                    feed.skip_to(mirror.keyspace.revision());
                    self.mirror = mirror;
                    return Ok(());
                }
                Err(LoadError::Read { source: source @ journal::Error::Unavailable { .. } }) => {
                    self.on_cut_off(&source);
                    let asked = self.parts.wait(PAUSE);
                    self.is_ending = asked.is_stop;
                    answer_all(asked.everybody(), Err(ApiError::NoLeader));
                    if self.is_ending {
                        return Ok(());
                    }
                }
                Err(source) => return Err(ReplicaError::Follow { source: source.into() }),
            }
        }
    }

    /// Takes the role and holds it; whether the end of the process ended that.
    fn take(&mut self, shared: &dyn Shared, turn: Turn) -> Result<bool, ReplicaError> {
        tracing::info!(after = turn.after.0, "taking the writer's role");
        let held = match Held::take(&mut self.mirror, shared, &self.parts) {
            Ok(held) => held,
            Err(TakeError::Threads(source)) => {
                return Err(ReplicaError::Threads { source: source.into() });
            }
            Err(TakeError::Load(source)) => {
                let error: &dyn std::error::Error = &source;
                tracing::warn!(error, "the writer's role could not be taken");
                answer_all(turn.takers, Err(ApiError::NoLeader));
                return Ok(false);
            }
        };
        answer_all(turn.takers, Ok(()));
        // A full queue is that of a thread that is about to beat.
        self.parts.beats.try_send(()).ok();
        let is_stop = self.hold(shared, &held);
        // Unless it is known already who has it.
        if self.parts.context.standing.is_holder() {
            self.parts.context.standing.follow(held.epoch());
        }
        if is_stop {
            hurry_unless_reached(shared);
        }
        held.give_up(&self.parts.context);
        Ok(is_stop)
    }

    /// Holds the role until somebody else has it, or writing failed, or, with `true`, until the end.
    fn hold(&mut self, shared: &dyn Shared, held: &Held) -> bool {
        let mut unshown = Unshown::default();
        while !held.has_failed() {
            let asked = self.parts.wait(if unshown.is_empty() { HOLD_EVERY } else { SHOW_EVERY });
            if asked.is_stop {
                return true;
            }
            let is_held = (asked.is_empty() && !unshown.is_empty())
                || self.look_at_role(shared, held, asked, &mut unshown);
            if !is_held {
                break;
            }
            unshown.answer(&self.parts.context.published);
        }
        answer_all(unshown.into_waiters(), Err(ApiError::LeaderChanged));
        false
    }

    /// Whether the role is still held, as far as can be learned. Whoever may be answered is.
    fn look_at_role(
        &mut self,
        shared: &dyn Shared,
        held: &Held,
        asked: Asked,
        unshown: &mut Unshown,
    ) -> bool {
        match shared.tip() {
            Ok(tip) if tip.epoch == held.epoch() => {
                self.is_cut_off = false;
                answer_all(asked.takers, Ok(()));
                unshown.add(tip, asked.waiters);
                true
            }
            Ok(tip) => {
                tracing::warn!(own = held.epoch().0, now = tip.epoch.0, "the role was taken");
                self.parts.context.standing.follow(tip.epoch);
                answer_all(asked.everybody(), Err(ApiError::LeaderChanged));
                false
            }
            // Whoever cannot ask does not answer, and keeps the role until somebody takes it.
            Err(error) => {
                self.on_cut_off(&error);
                answer_all(asked.everybody(), Err(ApiError::NoLeader));
                true
            }
        }
    }
}

// === impl Parts ===

impl Parts {
    /// Waits for the first question, and takes all that are there.
    fn wait(&self, time: Duration) -> Asked {
        let mut asked = Asked::default();
        match self.questions.recv_timeout(time) {
            Ok(first) => asked.take(first),
            Err(RecvTimeoutError::Timeout) => {
                asked.is_own_accord = true;
                return asked;
            }
            Err(RecvTimeoutError::Disconnected) => asked.is_stop = true,
        }
        self.questions.try_iter().for_each(|next| asked.take(next));
        asked
    }
}

// === impl Asked ===

impl Asked {
    /// Whether nobody waits for an answer.
    fn is_empty(&self) -> bool {
        self.waiters.is_empty() && self.takers.is_empty()
    }

    fn take(&mut self, question: Question) {
        match question {
            Question::Confirm(waiter) => self.waiters.push(waiter),
            Question::Claim(epoch) => self.claim = Some(epoch),
            Question::Take(taker) => self.takers.push(taker),
            // Whatever comes makes it look.
            Question::Look => {}
            Question::Stop => self.is_stop = true,
        }
    }

    /// All who wait, where the answer to all of them is the same.
    fn everybody(self) -> Vec<Waiter> {
        let Self { mut waiters, takers, .. } = self;
        waiters.extend(takers);
        waiters
    }
}

// === impl Unshown ===

impl Unshown {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn add(&mut self, tip: Tip, waiters: Vec<Waiter>) {
        if !waiters.is_empty() {
            self.0.push_back((tip, waiters));
        }
    }

    /// Lets all read who would see what the journal had when they asked, and forgets who gave up.
    fn answer(&mut self, published: &Published) {
        while let Some((_, waiters)) = self.0.pop_front_if(|(tip, _)| published.shows(tip)) {
            answer_all(waiters, Ok(()));
        }
        self.0.retain_mut(|(_, waiters)| {
            waiters.retain(|waiter| !waiter.is_closed());
            !waiters.is_empty()
        });
    }

    fn into_waiters(self) -> Vec<Waiter> {
        self.0.into_iter().flat_map(|(_, waiters)| waiters).collect()
    }
}

/// At the end: a write that was begun and a goodbye are waited for, unless nobody is there to take them.
fn hurry_unless_reached(shared: &dyn Shared) {
    if let Err(error) = shared.tip() {
        let error: &dyn std::error::Error = &error;
        tracing::warn!(error, "the journal cannot be reached, and is not waited for at the end");
        shared.hurry();
    }
}

fn answer_all(waiters: Vec<Waiter>, answer: Result<(), ApiError>) {
    for waiter in waiters {
        // Whoever asked may have gone away; that changes nothing.
        drop(waiter.send(answer.map_err(Error::Api)));
    }
}
