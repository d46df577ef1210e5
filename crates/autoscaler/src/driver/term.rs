//! One leadership: a registry and a memory that go on from the saved state, and iterations until the
//! lead, or certainty about the state, is lost.

use std::collections::BTreeSet;

use jiff::Timestamp;
use registry::{Facts, GroupId, Registry};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::estimate::Estimate;
use super::{Driver, Next};
use crate::cluster::{self, Cluster};
use crate::core::iteration;
use crate::core::{Account, Config, Drains, Ending, Inputs, Iteration, Memory, World};
use crate::keeper::{Keeper, Opened, Origin};
use crate::metrics::Function;
use crate::options::Mode;
use crate::provider::{self, Provider};
use crate::record::{Decided, Entry, Log, STEPS, Seen};
use crate::view::Last;

pub(super) struct Term {
    pub(super) registry: Registry,
    pub(super) memory: Memory,
    pub(super) keeper: Keeper,
    pub(super) log: Log,
    pub(super) stop: CancellationToken,
    /// Since when candidates are being marked in the iteration at hand.
    pub(super) marking_since: Option<Instant>,
    /// What facts were found strange, so that each is told once while it lasts.
    pub(super) reported: BTreeSet<String>,
    /// What pods, nodes and the cluster were told, likewise.
    pub(super) told: BTreeSet<String>,
    /// What would have been done, by the last iteration and by the one at hand: what is still foreseen
    /// is not told again.
    pub(super) foreseen: Foreseen,
}

#[derive(Default)]
pub(super) struct Foreseen {
    before: BTreeSet<String>,
    now: BTreeSet<String>,
}

/// What one iteration has looked at.
pub(super) struct Sight {
    pub(super) now: Timestamp,
    pub(super) facts: Facts,
    pub(super) world: World,
    pub(super) config: Config,
    /// The same as it is recorded, if it is.
    pub(super) seen: Option<Seen>,
}

/// Why an iteration failed as a whole.
#[derive(Debug, thiserror::Error)]
pub enum TermError {
    #[error("the saved state cannot be read")]
    Read(#[source] cluster::Error),
    #[error("the state cannot be saved, so nothing may be done")]
    Save(#[source] cluster::Error),
    #[error("the cluster cannot be looked at")]
    Look(#[source] cluster::Error),
    #[error("the provider cannot be asked")]
    Refresh(#[source] provider::Error),
    #[error("the lead is lost")]
    Lost,
    #[error("asked to stop")]
    Stopping,
}

// === impl Foreseen ===

impl Foreseen {
    fn on_iteration(&mut self) {
        self.before = std::mem::take(&mut self.now);
    }

    /// Whether neither the last iteration nor this one has said so.
    fn is_news(&mut self, words: &str) -> bool {
        self.now.insert(words.to_owned()) && !self.before.contains(words)
    }
}

// === impl TermError ===

impl TermError {
    /// Whether what is remembered may differ from what is saved: then it is read again.
    pub(super) fn ends_term(&self) -> bool {
        matches!(self, Self::Save(_) | Self::Lost | Self::Stopping | Self::Read(_))
    }
}

// === impl Term ===

impl Term {
    pub(super) async fn begin<P: Provider, C: Cluster>(
        driver: &Driver<P, C>,
        stop: CancellationToken,
    ) -> Result<Self, TermError> {
        let config = driver.options.registry.clone();
        let now = (driver.clock)();
        let Opened { keeper, registry, memory, origin } = match driver.options.mode {
            Mode::Observe => Opened {
                keeper: Keeper::idle(),
                registry: Registry::rebuild(config),
                memory: Memory::lost(now),
                origin: Origin::Restored,
            },
            Mode::Act | Mode::DryRun => {
                Keeper::open(&*driver.cluster, config, now).await.map_err(TermError::Read)?
            }
        };
        match origin {
            Origin::Restored => tracing::info!("going on from what is remembered"),
            Origin::Rebuilt(why) => {
                tracing::warn!(
                    why,
                    "starting without memory: at first nothing is asked for or removed"
                );
            }
        }
        Ok(Self {
            registry,
            memory,
            keeper,
            log: Log::new(driver.recorder.clone()),
            stop,
            marking_since: None,
            reported: BTreeSet::new(),
            told: BTreeSet::new(),
            foreseen: Foreseen::default(),
        })
    }

    /// One look and what follows from it. Whatever happens, status, metrics and changed state are
    /// written.
    pub(super) async fn iterate<P: Provider, C: Cluster>(
        &mut self,
        driver: &mut Driver<P, C>,
    ) -> Result<Next, TermError> {
        let done = self.steps(driver).await;
        let (account, next) = match done {
            Ok(account) => {
                let ending = account.ending.as_ref();
                let is_productive = ending.is_some_and(Ending::is_productive);
                (account, Ok(if is_productive { Next::AtOnce } else { Next::AfterInterval }))
            }
            Err(error) => (Account::default(), Err(error)),
        };
        let kept = self.finish(driver, account, next.is_ok()).await;
        let next = next?;
        kept?;
        Ok(next)
    }

    async fn steps<P: Provider, C: Cluster>(
        &mut self,
        driver: &mut Driver<P, C>,
    ) -> Result<Account, TermError> {
        let now = (driver.clock)();
        let mut sight = self.look(driver, now).await?;
        let seed = now.as_second().unsigned_abs();
        let looked = Instant::now();
        self.enter_look(&mut sight, seed);
        let Sight { facts, world, config, .. } = &sight;
        let inputs = Inputs { now, seed, facts, world, config };
        let mut iteration = Iteration::begin(inputs, &mut self.registry, &self.memory);
        self.tell_notices(driver, iteration.account().notices.clone());
        self.marking_since = None;
        self.foreseen.on_iteration();
        let mut estimate = Estimate::default();
        let mut looks = 0;
        loop {
            self.may_begin(driver)?;
            match iteration.next(&mut self.registry, &mut self.memory, STEPS) {
                iteration::Next::Act(action) => {
                    let effect = self.act(driver, &action, world).await?;
                    iteration.on_effect(&effect, &mut self.memory);
                    self.log.enter(|| Entry::Acted { action, effect });
                }
                iteration::Next::Working => {
                    looks += 1;
                    let (now, max) = (Instant::now(), driver.options.binpacking_duration_max);
                    if estimate.is_overdue(iteration.estimating(), now, max)
                        && let Some(group) = iteration.cut()
                    {
                        self.log.enter(|| Entry::Cut { after: looks });
                        tracing::warn!(%group, "its estimate is cut short: it takes too long");
                    }
                    tokio::task::yield_now().await;
                }
                iteration::Next::Ended => break,
            }
        }
        let touched = iteration.touched().clone();
        let account = iteration.into_account();
        driver.metrics.on_activity(Function::Autoscaling, now, looked.elapsed());
        if let Some(Ending::Complete { .. }) = account.ending {
            driver.metrics.on_planned(now);
        }
        self.log.enter(|| Entry::Decided(Decided::of(&account)));
        self.tell_account(driver, &account, world);
        self.begin_removals(driver, &account, (&sight, touched)).await?;
        Ok(account)
    }

    /// Whoever was told to stop, or does not lead any more, begins nothing new.
    pub(super) fn may_begin<P: Provider, C: Cluster>(
        &self,
        driver: &Driver<P, C>,
    ) -> Result<(), TermError> {
        if self.stop.is_cancelled() {
            return Err(TermError::Stopping);
        }
        if driver.is_leading() { Ok(()) } else { Err(TermError::Lost) }
    }

    /// Reading changes nothing, so whoever is told to stop does not wait for it.
    async fn look<P: Provider, C: Cluster>(
        &self,
        driver: &mut Driver<P, C>,
        now: Timestamp,
    ) -> Result<Sight, TermError> {
        let started = Instant::now();
        let looked = async {
            driver.reader.provider().refresh().await.map_err(TermError::Refresh)?;
            driver.metrics.on_activity(Function::CloudProviderRefresh, now, started.elapsed());
            let sight = driver.look(now).await.map_err(TermError::Look)?;
            driver.metrics.on_activity(Function::UpdateState, now, started.elapsed());
            Ok(sight)
        };
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Err(TermError::Stopping),
            sight = looked => sight,
        }
    }

    async fn begin_removals<P: Provider, C: Cluster>(
        &mut self,
        driver: &Driver<P, C>,
        account: &Account,
        (sight, touched): (&Sight, BTreeSet<GroupId>),
    ) -> Result<(), TermError> {
        if driver.options.mode == Mode::Act {
            return self.step_drains_in(driver, sight, touched).await;
        }
        for order in &account.removals {
            self.foresee(&format!("remove node {}: {:?}", order.node, order.reason));
        }
        self.memory.drains = Drains::default();
        self.log.enter(|| Entry::NoneRemoved);
        Ok(())
    }

    /// The registry observes within the iteration, where nobody else sees what it decides.
    fn enter_look(&mut self, sight: &mut Sight, seed: u64) {
        let Some(seen) = sight.seen.take() else { return };
        let (now, facts) = (sight.now, sight.facts.clone());
        self.log.begin(now, &self.registry, &self.memory);
        let change = self.log.change_to(seen);
        let decisions = self.registry.clone().observe(now, &facts).decisions;
        self.log.enter(|| Entry::Looked { now, seed, facts, change, decisions });
    }

    pub(super) fn foresee(&mut self, words: &str) {
        if self.foreseen.is_news(words) {
            tracing::info!("would {words}");
        }
    }

    /// What is written at the end of every iteration.
    async fn finish<P: Provider, C: Cluster>(
        &mut self,
        driver: &Driver<P, C>,
        account: Account,
        has_looked: bool,
    ) -> Result<(), TermError> {
        let now = (driver.clock)();
        let status = self.registry.status(now);
        driver.metrics.show(&status);
        driver.metrics.set_pending_deletions(self.memory.drains.len());
        if has_looked {
            driver.metrics.show_account(&account);
            driver.shown.set_last(self.last(driver, account, now));
        }
        if has_looked && !self.log.end() {
            driver.metrics.on_record_dropped();
        }
        if driver.options.mode == Mode::Observe || !driver.is_leading() {
            return Ok(());
        }
        let text = serde_saphyr::to_string(&status).expect("a status can be written as YAML");
        if let Err(error) = driver.cluster.write_status(&text, now).await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "the status is not published");
        }
        self.keep(driver).await
    }

    /// What is shown until the next iteration has ended.
    fn last<P: Provider, C: Cluster>(
        &self,
        driver: &Driver<P, C>,
        account: Account,
        now: Timestamp,
    ) -> Last {
        let provider = driver.reader.provider();
        let lacks = self.registry.groups().map(|it| (it.clone(), provider.unsupported(it)));
        Last {
            registry: self.registry.clone(),
            account,
            drains: self.memory.drains.clone(),
            unsupported: lacks.filter(|(_, methods)| !methods.is_empty()).collect(),
            now,
        }
    }

    pub(super) async fn keep<P: Provider, C: Cluster>(
        &mut self,
        driver: &Driver<P, C>,
    ) -> Result<(), TermError> {
        let both = (&self.registry, &self.memory);
        let kept = self.keeper.keep(&*driver.cluster, both, (driver.clock)()).await;
        kept.map_err(TermError::Save)
    }
}

#[cfg(test)]
mod tests {
    use super::Foreseen;

    #[test]
    fn what_is_foreseen_is_told_when_it_begins_and_when_it_comes_again() {
        let mut foreseen = Foreseen::default();
        let mut iteration = |words: &[&str]| {
            foreseen.on_iteration();
            let news = words.iter().filter(|words| foreseen.is_news(words)).count();
            (news, foreseen.before.len() + foreseen.now.len())
        };
        assert_eq!(iteration(&["raise", "remove", "remove"]), (2, 2));
        assert_eq!(iteration(&["raise"]), (0, 3));
        assert_eq!(iteration(&["raise", "remove"]), (1, 3));
        assert_eq!(iteration(&[]), (0, 2));
        assert_eq!(iteration(&[]), (0, 0), "nothing is kept");
    }
}
