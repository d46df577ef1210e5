//! Where everything comes together: one task owns the core, takes in what the feeds bring, starts
//! what the core asks for and tells it what became of that.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use kubekit::presence;
use tokio::{
    sync::mpsc,
    time::{Instant, MissedTickBehavior, timeout_at},
};
use tokio_util::sync::CancellationToken;

use super::{
    Context,
    header_feed::HeaderNews,
    node_feed::NodeNews,
    posting::{self, Ended},
    reading::{roll, saved},
    upkeep::{self, Upkept},
};
use crate::{
    core::{
        keys::QUARANTINED,
        names::NodeHash,
        object::Document,
        watch::{
            engine::{Engine, Roll, Turn, Upkeep},
            post::Content,
            relist::Retention,
            resume::{self, Step},
        },
    },
    metrics::{Posted, Store},
};

/// How often to look at what is due by the second.
const TICK: Duration = Duration::from_secs(1);

/// Checkpoints worked on at the same time: posts go first.
const UPKEEP_MAX: usize = 4;

/// How long to go on posting and saving once we are asked to stop. What is left is left to the other
/// watchers, or to the next one.
const DRAIN_MAX: Duration = Duration::from_secs(8);

/// Before the end, a checkpoint that is due in so much time is due now.
const DRAIN_AHEAD: Duration = Duration::from_hours(1);

/// What comes in.
pub(super) struct Inbox {
    pub(super) nodes: mpsc::Receiver<NodeNews>,
    pub(super) transactions: mpsc::Receiver<HeaderNews>,
    pub(super) checkpoints: mpsc::Receiver<HeaderNews>,
    pub(super) members: presence::Handle,
}

pub(super) struct Desk {
    context: Arc<Context>,
    engine: Engine,
    inbox: Inbox,
    /// The `resume` object as it was last seen.
    kept: Option<Document>,
    jobs: FuturesUnordered<BoxFuture<'static, Done>>,
    upkeep: usize,
    is_keeping: bool,
    is_draining: bool,
}

/// What became of something that was started.
enum Done {
    Posted(Ended),
    Upkept(Option<Upkept>),
    Kept,
    /// Nothing, if the lists failed; the next sweep makes up for it.
    Swept(Option<Roll>),
}

// === impl Desk ===

impl Desk {
    pub(super) fn new(context: Arc<Context>, engine: Engine, inbox: Inbox) -> Self {
        let jobs = FuturesUnordered::new();
        Self {
            context,
            engine,
            inbox,
            kept: None,
            jobs,
            upkeep: 0,
            is_keeping: false,
            is_draining: false,
        }
    }

    pub(super) async fn run(mut self, shutdown: CancellationToken) {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.start_posts();
            let next_post = self.engine.next_post_at().map(Instant::from);
            tokio::select! {
                () = shutdown.cancelled() => break,
                _ = ticks.tick() => self.on_tick(),
                Some(news) = self.inbox.nodes.recv(), if !self.engine.is_full() => {
                    self.on_nodes(news);
                }
                Some(news) = self.inbox.transactions.recv() => self.on_transactions(news),
                Some(news) = self.inbox.checkpoints.recv() => self.on_checkpoints(news),
                Some(members) = self.inbox.members.changed() => {
                    self.engine.on_members(members.iter().cloned().collect());
                }
                Some(done) = self.jobs.next() => self.on_done(done),
                () = sleep_until(next_post) => {}
            }
        }
        self.drain().await;
    }

    fn on_nodes(&mut self, news: NodeNews) {
        let now = now();
        match news {
            NodeNews::Event(event) => self.engine.on_event(event, now),
            NodeNews::Bookmark(position) => self.engine.on_bookmark(position),
            NodeNews::Relisted { listing, reason } => {
                let retention =
                    Retention { period: self.context.retention, now: (self.context.clock)() };
                self.engine.on_relisted(listing, reason, retention, now);
            }
        }
    }

    /// Other ConfigMaps may lie in the namespace; their names are none of transactions.
    fn on_transactions(&mut self, news: HeaderNews) {
        match news {
            HeaderNews::Listed(headers) => {
                self.engine.on_transactions_listed();
                headers.iter().for_each(|header| self.on_transaction(header));
            }
            HeaderNews::Seen(header) => self.on_transaction(&header),
            HeaderNews::Gone(header) => {
                if let Ok(name) = header.name.parse() {
                    self.engine.on_transaction_ended(name);
                }
            }
        }
    }

    fn on_transaction(&mut self, header: &Document) {
        let Ok(name) = header.name.parse() else { return };
        if header.labels.contains_key(QUARANTINED) {
            self.engine.on_transaction_ended(name);
        } else {
            self.engine.on_transaction(name);
        }
    }

    fn on_checkpoints(&mut self, news: HeaderNews) {
        match news {
            HeaderNews::Listed(headers) => {
                let kept = headers.iter().find(|header| header.name == resume::NAME);
                self.on_kept(kept.cloned());
                self.engine.on_checkpoints(headers.iter().filter_map(saved).collect());
            }
            HeaderNews::Seen(header) if header.name == resume::NAME => self.on_kept(Some(header)),
            HeaderNews::Gone(header) if header.name == resume::NAME => self.on_kept(None),
            HeaderNews::Seen(header) => {
                if let Some(saved) = saved(&header) {
                    self.engine.on_checkpoint(saved);
                }
            }
            HeaderNews::Gone(header) => {
                if let Ok(node) = header.name.parse::<NodeHash>() {
                    self.engine.on_checkpoint_removed(&node, now());
                }
            }
        }
    }

    /// What cannot be read is no position, and is written over.
    fn on_kept(&mut self, kept: Option<Document>) {
        let position = kept.as_ref().and_then(|kept| resume::decode(kept).ok().flatten());
        self.engine.on_resume(position, now());
        self.kept = kept;
    }

    fn on_tick(&mut self) {
        let now = now();
        self.context.status.on_progress();
        let Context { metrics, status, .. } = &*self.context;
        metrics.set_watch_gap(status.watch_gap().as_secs_f64());
        metrics.set_checkpoint_lag(self.engine.checkpoint_lag(now).as_secs_f64());
        metrics.set_store_bytes(Store::Checkpoints, self.engine.checkpoint_bytes());
        self.start_upkeep(Duration::ZERO);
        if !self.is_keeping {
            let step = self.engine.take_step(now);
            self.start_keeping(step);
        }
        if self.engine.take_sweep(now) {
            let context = self.context.clone();
            self.jobs.push(async move { Done::Swept(sweep(&context).await) }.boxed());
        }
    }

    fn start_posts(&mut self) {
        while let Some(turn) = self.engine.take_post(now()) {
            match turn {
                Turn::Post(post) => {
                    self.jobs
                        .push(posting::post(self.context.clone(), post).map(Done::Posted).boxed());
                }
                Turn::Seen(post) => {
                    if let Content::Transaction(transaction) = &post.content {
                        self.context.metrics.on_posted(transaction.kind.as_str(), Posted::Seen);
                    }
                }
            }
        }
    }

    fn start_upkeep(&mut self, ahead: Duration) {
        if self.context.is_dry_run {
            return;
        }
        while self.upkeep < UPKEEP_MAX
            && let Some(upkeep) = self.engine.take_upkeep(now() + ahead)
        {
            let context = self.context.clone();
            let job = match upkeep {
                Upkeep::Save { live, over } => upkeep::save(context, live, over).map(Some).boxed(),
                Upkeep::Remove(saved) => upkeep::remove(context, saved).map(|()| None).boxed(),
            };
            self.jobs.push(job.map(Done::Upkept).boxed());
            self.upkeep += 1;
        }
    }

    fn start_keeping(&mut self, step: Step) {
        if step != Step::Nothing && !self.context.is_dry_run {
            self.is_keeping = true;
            let job = upkeep::keep(self.context.clone(), step, self.kept.clone());
            self.jobs.push(job.map(|()| Done::Kept).boxed());
        }
    }

    fn on_done(&mut self, done: Done) {
        let now = now();
        match done {
            Done::Posted(Ended::Told(post)) => self.engine.on_posted(&post),
            Done::Posted(Ended::Untold(post)) => self.engine.on_untold(&post),
            Done::Upkept(upkept) => {
                self.upkeep -= 1;
                match upkept {
                    Some(Upkept::Saved(saved)) => self.engine.on_saved(saved, now),
                    // Before the end, whatever is due within the hour is due now, and what would
                    // tell us that another watcher was faster is no longer read.
                    Some(Upkept::NotNow(node)) => {
                        self.engine.on_not_saved(&node, !self.is_draining, now);
                    }
                    Some(Upkept::Never(node)) => self.engine.on_not_saved(&node, false, now),
                    None => {}
                }
                self.start_upkeep(Duration::ZERO);
            }
            Done::Kept => self.is_keeping = false,
            Done::Swept(roll) => {
                if let Some(roll) = roll {
                    self.engine.on_swept(roll, now);
                }
            }
        }
    }

    /// Takes nothing new, and finishes what was begun: posts, checkpoints, each tried once, and at
    /// last how far we got.
    pub(super) async fn drain(mut self) {
        self.is_draining = true;
        let deadline = Instant::now() + DRAIN_MAX;
        self.finish(deadline).await;
        let step = self.engine.last_step();
        self.start_keeping(step);
        self.finish(deadline).await;
        if !self.engine.is_idle() {
            tracing::warn!("stopped before everything was posted; others or the next start will");
        }
    }

    async fn finish(&mut self, deadline: Instant) {
        loop {
            self.start_posts();
            self.start_upkeep(DRAIN_AHEAD);
            match timeout_at(deadline, self.jobs.next()).await {
                Ok(Some(done)) => self.on_done(done),
                // A post may wait for its time with nothing under way.
                Ok(None) => match self.engine.next_post_at().map(Instant::from) {
                    Some(due) if due < deadline => tokio::time::sleep_until(due).await,
                    _ => return,
                },
                Err(_elapsed) => return,
            }
        }
    }
}

async fn sweep(context: &Context) -> Option<Roll> {
    match roll(&context.objects).await {
        Ok(roll) => Some(roll),
        Err(error) => {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "looking for forgotten checkpoints in an hour again");
            None
        }
    }
}

/// The core's time.
fn now() -> std::time::Instant {
    Instant::now().into_std()
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
