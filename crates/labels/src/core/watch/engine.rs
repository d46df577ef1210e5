//! One watcher without its surroundings: it is told what was read, seen, written and what time it is,
//! and says what to post, what to save and where to go on.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeSet, VecDeque},
    time::{Duration, Instant},
};

use super::{
    checkpoints::{Checkpoints, Plan, Saved},
    index::{Index, NodeEvent, Outcome},
    order::Order,
    post::{Content, Post},
    queued::Queued,
    recent::Recent,
    relist::{self, Listing, Retention},
    resume::{Reason, Resume, Step},
    sweep::{Findings, Sweep},
};
use crate::core::{
    names::{NodeHash, TransactionName},
    object::{LiveNode, Uid},
    rank::{HeadStart, Rank},
    rv::ResourceVersion,
};

/// Names of transactions remembered, gone ones included: of those that came while a post waited for
/// its turn, however long the queue was.
const NAMES_SEEN_MAX: usize = 20_000;

/// Incarnations remembered whose checkpoints cannot be read. One that is forgotten is looked at
/// again.
const UNTOLD_MAX: usize = 1_000;

/// How long a watcher leaves a post to the better ones.
const POST: HeadStart =
    HeadStart { step: Duration::from_millis(150), max: Duration::from_millis(600) };

/// The subject that watchers rank for to keep the position.
const RESUME: &str = "resume";

/// The whole state of a watcher.
#[derive(Debug)]
pub struct Engine {
    identity: String,
    members: Vec<String>,
    index: Index,
    order: Order,
    seen: Recent<TransactionName>,
    queued: Queued,
    resume: Resume,
    checkpoints: Checkpoints,
    sweep: Sweep,
    removals: VecDeque<Saved>,
    /// Gone, with checkpoints that cannot be read. Those stay, in the way of their successors', until
    /// a person has mended or deleted them.
    untold: Recent<Uid>,
}

/// A post whose turn has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// To be posted until the server has it; then tell [`Engine::on_posted`], or
    /// [`Engine::on_untold`] if its checkpoint cannot be read.
    Post(Post),
    /// Another watcher was faster. Nothing is left to do.
    Seen(Post),
}

/// Work on one checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Upkeep {
    /// Save the node's labels, over the checkpoint that is there; then tell
    /// [`Engine::on_saved`] or [`Engine::on_not_saved`].
    Save { live: LiveNode, over: Option<Saved> },
    /// Remove the checkpoint if it is still this one. What fails is found again an hour later.
    Remove(Saved),
}

/// Who lives, and of whom the labels are stored.
#[derive(Clone, Debug)]
pub struct Roll {
    /// Where the nodes were listed.
    pub position: ResourceVersion,
    pub nodes: Vec<LiveNode>,
    pub stored: BTreeSet<Uid>,
}

// === impl Engine ===

impl Engine {
    #[must_use]
    pub fn new(identity: String, checkpoint_delay: Duration, now: Instant) -> Self {
        Self {
            identity,
            members: Vec::new(),
            index: Index::default(),
            order: Order::default(),
            seen: Recent::new(NAMES_SEEN_MAX),
            queued: Queued::default(),
            resume: Resume::default(),
            checkpoints: Checkpoints::new(checkpoint_delay),
            sweep: Sweep::new(now),
            removals: VecDeque::new(),
            untold: Recent::new(UNTOLD_MAX),
        }
    }

    /// The watchers that live, as far as we know.
    pub fn on_members(&mut self, members: Vec<String>) {
        self.members = members;
    }

    pub fn on_event(&mut self, event: NodeEvent, now: Instant) {
        let (node, position) = (NodeHash::of(&event.node.name), event.node.rv.clone());
        let Outcome { posts, is_changed } = self.index.on_event(event);
        let posts = self.timed(posts, now);
        self.order.on_event(position, posts);
        if is_changed {
            self.on_changed(&node, now);
        }
    }

    /// Nothing happened up to here.
    pub fn on_bookmark(&mut self, position: ResourceVersion) {
        self.order.on_event(position, Vec::new());
    }

    /// Events were missed, and this is how things stand now.
    pub fn on_relisted(
        &mut self,
        listing: Listing,
        reason: Reason,
        retention: Retention,
        now: Instant,
    ) {
        let posts = relist::plan(&self.index, &listing, retention);
        self.resume.on_relisted();
        if reason == Reason::WentBack {
            // The versions in the names will be given out again.
            self.seen = Recent::new(NAMES_SEEN_MAX);
            self.checkpoints.on_went_back(&listing.position);
        }
        let nodes: Vec<_> = listing.nodes.iter().map(|node| NodeHash::of(&node.name)).collect();
        self.index.on_relisted(listing.nodes);
        let posts = self.timed(posts, now);
        self.order.on_event(listing.position, posts);
        nodes.iter().for_each(|node| self.on_changed(node, now));
    }

    /// A transaction is on the server, and waits to be worked off.
    pub fn on_transaction(&mut self, name: TransactionName) {
        self.queued.insert(&name);
        self.seen.insert(name);
    }

    /// A transaction was on the server, or is there and nobody works it off.
    pub fn on_transaction_ended(&mut self, name: TransactionName) {
        self.queued.remove(&name);
        self.seen.insert(name);
    }

    /// All transactions were listed, and are told of from now on; of others we know nothing.
    pub fn on_transactions_listed(&mut self) {
        self.queued = Queued::default();
    }

    /// The kept position is or was this.
    pub fn on_resume(&mut self, position: Option<ResourceVersion>, now: Instant) {
        self.resume.on_seen(position, now);
    }

    pub fn on_checkpoint(&mut self, saved: Saved) {
        self.checkpoints.on_seen(saved);
    }

    pub fn on_checkpoints(&mut self, all: Vec<Saved>) {
        self.checkpoints.on_listed(all);
    }

    /// A checkpoint is gone. If its node lives, it gets a new one.
    pub fn on_checkpoint_removed(&mut self, node: &NodeHash, now: Instant) {
        self.checkpoints.on_removed(node);
        if self.index.get(node).is_some() {
            self.on_changed(node, now);
        }
    }

    /// The next post whose time has come.
    pub fn take_post(&mut self, now: Instant) -> Option<Turn> {
        let post = self.order.take(now)?;
        if !post.witnessed().is_some_and(|name| self.seen.contains(name)) {
            return Some(Turn::Post(post));
        }
        self.order.on_done(&post.node);
        Some(Turn::Seen(post))
    }

    /// When [`take_post`](Self::take_post) has something to give.
    #[must_use]
    pub fn next_post_at(&self) -> Option<Instant> {
        self.order.next_due()
    }

    /// The server has it.
    pub fn on_posted(&mut self, post: &Post) {
        self.order.on_done(&post.node);
        let Content::Checkpoint { uid } = &post.content else { return };
        self.index.on_recovered(uid.clone());
        let swept = self.sweep.on_told(uid).and_then(|node| self.checkpoints.get(&node));
        let swept = swept.filter(|saved| saved.meta.uid == *uid);
        self.removals.extend(swept.cloned());
    }

    /// The checkpoint that was to be told from cannot be read: it is all there is, so it stays. The
    /// hourly look finds it again.
    pub fn on_untold(&mut self, post: &Post) {
        self.order.on_done(&post.node);
        let Content::Checkpoint { uid } = &post.content else { return };
        self.sweep.on_told(uid);
        self.untold.insert(uid.clone());
    }

    /// Whether no more events may be read.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.order.is_full()
    }

    /// Whether everything read is posted.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.order.is_empty()
    }

    #[must_use]
    pub fn watermark(&self) -> Option<&ResourceVersion> {
        self.order.watermark()
    }

    /// What to do about the kept position, at once.
    pub fn take_step(&mut self, now: Instant) -> Step {
        let rank = self.rank(RESUME);
        let Some(watermark) = self.order.watermark() else { return Step::Nothing };
        self.resume.step(watermark, rank, now)
    }

    /// What to do about the kept position before the end.
    #[must_use]
    pub fn last_step(&self) -> Step {
        self.watermark().map_or(Step::Nothing, |watermark| self.resume.last_step(watermark))
    }

    /// The next checkpoint to work on.
    pub fn take_upkeep(&mut self, now: Instant) -> Option<Upkeep> {
        if let Some(saved) = self.removals.pop_front() {
            return Some(Upkeep::Remove(saved));
        }
        while let Some(node) = self.checkpoints.take_due(now) {
            if let Some(upkeep) = self.look_after(&node, now) {
                return Some(upkeep);
            }
        }
        None
    }

    /// The labels that `saved` tells of are on the server. The node may have changed meanwhile.
    pub fn on_saved(&mut self, saved: Saved, now: Instant) {
        let node = saved.node_hash();
        self.checkpoints.on_seen(saved);
        self.checkpoints.on_settled(&node);
        let live = self.index.get(&node);
        if live.is_some_and(|live| self.checkpoints.plan(live, &self.index) != Plan::Nothing) {
            self.on_changed(&node, now);
        }
    }

    /// Trying again may help, or not: then the next change of the labels is the next occasion.
    pub fn on_not_saved(&mut self, node: &NodeHash, may_help: bool, now: Instant) {
        if may_help {
            self.checkpoints.on_postponed(node, now);
        } else {
            self.checkpoints.on_settled(node);
        }
    }

    #[must_use]
    pub fn checkpoint_lag(&self, now: Instant) -> Duration {
        self.checkpoints.lag(now)
    }

    /// The size of all checkpoints, about.
    #[must_use]
    pub fn checkpoint_bytes(&self) -> usize {
        self.checkpoints.bytes()
    }

    /// Whether it is time to list nodes and records for [`on_swept`](Self::on_swept); asked once.
    pub fn take_sweep(&mut self, now: Instant) -> bool {
        let is_due = self.sweep.is_due(now);
        if is_due {
            self.sweep.on_begun(now);
        }
        is_due
    }

    /// The lists for a sweep are there.
    pub fn on_swept(&mut self, roll: Roll, now: Instant) {
        let Roll { position, nodes, stored } = roll;
        let alive: BTreeSet<Uid> = nodes.iter().map(|node| node.uid.clone()).collect();
        let findings = Findings {
            checkpoints: &self.checkpoints,
            alive: &alive,
            position: &position,
            stored: &stored,
            index: &self.index,
        };
        let rank = |node: &NodeHash| rank(&self.identity, &self.members, &node.to_string());
        // An end that was read may still wait to be posted, and then the checkpoint is all that
        // outlives us. Whoever has something to post is looked at an hour later.
        let mine = |node: &NodeHash| rank(node) == Rank::FIRST && !self.order.has_open(node);
        let plan = self.sweep.plan(&findings, mine);
        self.removals.extend(plan.removals);
        let posts = self.timed(plan.posts, now);
        self.order.on_finding(posts);
        for node in self.index.on_listed(nodes) {
            self.on_changed(&node, now);
        }
    }

    fn look_after(&mut self, node: &NodeHash, now: Instant) -> Option<Upkeep> {
        let Some(live) = self.index.get(node) else {
            self.checkpoints.on_settled(node);
            return None;
        };
        // What a checkpoint of an earlier incarnation has may be what is being told. The node's own
        // is saved whatever waits: while nothing can be posted, it is all that outlives us.
        let saved = self.checkpoints.get(node);
        let is_of_another = saved.is_some_and(|saved| saved.meta.uid != live.uid);
        if is_of_another && self.order.has_open(node) {
            self.checkpoints.on_postponed(node, now);
            return None;
        }
        match self.checkpoints.plan(live, &self.index) {
            Plan::Nothing => self.checkpoints.on_settled(node),
            Plan::Create => return Some(Upkeep::Save { live: live.clone(), over: None }),
            Plan::Replace(saved) if self.awaits_restore(live, &saved) => {
                self.checkpoints.on_nothing_yet(node, now);
            }
            Plan::Replace(saved) => {
                return Some(Upkeep::Save { live: live.clone(), over: Some(saved) });
            }
            Plan::Recover(saved) if self.untold.contains(&saved.meta.uid) => {
                self.checkpoints.on_postponed(node, now);
            }
            Plan::Recover(saved) => {
                let post = Post::checkpointed(node.clone(), saved.meta.uid);
                self.order.on_finding(vec![(post, now)]);
                self.checkpoints.on_postponed(node, now);
            }
        }
        None
    }

    /// Whether a node has returned and is about to get its labels back. Until then there is nothing
    /// to keep of it: the end of its last incarnation was told, so its labels are stored, or will be
    /// by what is queued; and those of an incarnation that was not given them do not replace them,
    /// however it ends. Once the queue is worked off, its labels are kept whatever became of that.
    fn awaits_restore(&self, live: &LiveNode, saved: &Saved) -> bool {
        let is_return = saved.meta.uid != live.uid;
        is_return && live.marker.is_none() && self.queued.has(&NodeHash::of(&live.name))
    }

    fn on_changed(&mut self, node: &NodeHash, now: Instant) {
        let rank = self.rank(&node.to_string());
        self.checkpoints.on_changed(node, rank, now);
    }

    /// Better watchers get a head start.
    fn timed(&self, posts: Vec<Post>, now: Instant) -> Vec<(Post, Instant)> {
        let timed = posts.into_iter().map(|post| {
            let due = now + self.rank(&post.node.to_string()).wait(POST);
            (post, due)
        });
        timed.collect()
    }

    fn rank(&self, subject: &str) -> Rank {
        rank(&self.identity, &self.members, subject)
    }
}

fn rank(identity: &str, members: &[String], subject: &str) -> Rank {
    Rank::of(subject, identity, members.iter().map(String::as_str))
}
