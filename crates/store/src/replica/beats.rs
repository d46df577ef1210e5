//! The thread that tells the others that this member lives, and looks whether they do.

use std::{
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, SyncSender},
    },
    time::Duration,
};

use journal::{Epoch, Journal, Member, Shared};
use tokio::time::Instant;

use super::{
    Question, Standing,
    watchdog::{Census, Sign, Watchdog},
};

const BEAT_EVERY: Duration = Duration::from_millis(500);

pub(crate) struct Beats {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) standing: Arc<Standing>,
    /// What the others are told; epoch and beat change.
    pub(crate) own: Member,
    /// Where it is told that the role should be taken.
    pub(crate) questions: SyncSender<Question>,
    /// Asks for a beat before its time, and ends the thread when the other end is gone.
    pub(crate) asked: Receiver<()>,
    /// Ends the thread that asks for sizes, when this one ends.
    pub(crate) sizes: SyncSender<()>,
}

/// What is remembered between two beats.
#[derive(Default)]
struct Memory {
    watchdog: Watchdog,
    census: Census,
    is_cut_off: bool,
}

// === impl Beats ===

impl Beats {
    /// Beats until told to end, then says goodbye.
    pub(crate) fn run(mut self) {
        let mut memory = Memory::default();
        loop {
            self.beat(&mut memory);
            match self.asked.recv_timeout(BEAT_EVERY) {
                Ok(()) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        drop(self.sizes);
        if let Some(shared) = self.journal.shared()
            && let Err(error) = shared.withdraw(self.own.id)
        {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(error, "the others will learn late that this member has left");
        }
    }

    /// A beat that fails is made up for by the next; what matters is asked of the journal anyway.
    fn beat(&mut self, memory: &mut Memory) {
        let journal = self.journal.clone();
        let Some(shared) = journal.shared() else { return };
        match self.try_beat(shared, memory) {
            Ok(()) => memory.is_cut_off = false,
            Err(error) => {
                memory.watchdog.forget();
                if !std::mem::replace(&mut memory.is_cut_off, true) {
                    let error: &dyn std::error::Error = &error;
                    tracing::warn!(error, "the other members cannot be seen");
                }
            }
        }
    }

    fn try_beat(&mut self, shared: &dyn Shared, memory: &mut Memory) -> Result<(), journal::Error> {
        let term = self.standing.term();
        self.own.epoch = if self.standing.is_holder() { term } else { Epoch(0) };
        self.own.beat += 1;
        shared.announce(&self.own)?;
        let members = shared.members()?;
        let epoch = shared.tip()?.epoch;
        let now = Instant::now();
        memory.census.look(&members, now);
        let (living, absent): (Vec<Member>, Vec<Member>) =
            members.iter().cloned().partition(|member| memory.census.lives(member.id, now));
        self.standing.meet(&living);
        if self.standing.is_holder() {
            memory.watchdog.forget();
            let gone = absent.iter().filter(|member| memory.census.is_gone(member.id, now));
            return gone.into_iter().try_for_each(|member| shared.withdraw(member.id));
        }
        if memory.watchdog.look(Sign::of(epoch, &members), self.rank(&living, epoch), now) {
            // A full queue is that of a member that is busy answering; it will be told again.
            drop(self.questions.try_send(Question::Claim(epoch)));
        }
        Ok(())
    }

    /// How many living followers come before this one.
    fn rank(&self, living: &[Member], epoch: Epoch) -> u32 {
        let before = living.iter().filter(|member| member.epoch != epoch || epoch == Epoch(0));
        let count = before.filter(|member| member.id < self.own.id).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }
}
