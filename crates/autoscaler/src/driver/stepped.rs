//! The loop without a process around it: whoever owns the clock asks for every iteration. What is done
//! in one is what a process does; there is no election, no pause and no probe.

use std::sync::Arc;

use kubekit::health::Health;
use prometheus_client::registry::Registry as Metered;
use registry::Registry;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::term::{Term, TermError};
use super::{Clock, Driver, Leads};
use crate::cluster::Cluster;
use crate::core::{Account, Memory};
use crate::metrics::Metrics;
use crate::options::Options;
use crate::provider::{Provider, Reader};
use crate::record::Recorder;
use crate::view::Shown;
use crate::world::Preferences;

/// See the module. Dropped, it is as a process that was killed.
pub struct Stepped<P, C> {
    driver: Driver<P, C>,
    term: Option<Term>,
    stop: CancellationToken,
}

/// What a loop is given beside its options.
pub struct Parts<P, C> {
    pub provider: P,
    pub cluster: Arc<C>,
    pub clock: Clock,
    pub leads: Leads,
    pub recorder: Option<Recorder>,
}

// === impl Stepped ===

impl<P: Provider, C: Cluster> Stepped<P, C> {
    #[must_use]
    pub fn new(options: Options, parts: Parts<P, C>) -> Self {
        let Parts { provider, cluster, clock, leads, recorder } = parts;
        let health = Health::default();
        let driver = Driver {
            preferences: Preferences::new(options.expander.clone()),
            options: Arc::new(options),
            reader: Reader::new(provider),
            cluster,
            clock,
            standing: None,
            leads,
            wakes: Arc::new(Notify::new()),
            metrics: Metrics::new(&mut Metered::default()),
            shown: Shown::default(),
            recorder,
            active: health.live("activity"),
            succeeding: health.live("success"),
        };
        Self { driver, term: None, stop: CancellationToken::new() }
    }

    /// One iteration, in a new term if there is none.
    ///
    /// # Errors
    ///
    /// If it fails as a whole. Where what is remembered may differ from what is saved, the term is over.
    pub async fn iterate(&mut self) -> Result<(), TermError> {
        let mut term = match self.term.take() {
            Some(term) => term,
            None => Term::begin(&self.driver, self.stop.clone()).await?,
        };
        let iterated = term.iterate(&mut self.driver).await.map(drop);
        self.keep(term, iterated)
    }

    /// What a process does about removals between iterations.
    ///
    /// # Errors
    ///
    /// As [`iterate`](Self::iterate).
    pub async fn step_drains(&mut self) -> Result<(), TermError> {
        let Some(mut term) = self.term.take() else { return Ok(()) };
        let stepped = term.step_drains(&self.driver).await;
        self.keep(term, stepped)
    }

    /// Whoever cancels it tells the loop to stop, as one does with a process.
    #[must_use]
    pub fn stop(&self) -> CancellationToken {
        self.stop.clone()
    }

    fn keep(&mut self, term: Term, outcome: Result<(), TermError>) -> Result<(), TermError> {
        self.term = Some(term).filter(|_| !outcome.as_ref().is_err_and(TermError::ends_term));
        outcome
    }

    /// Of this term.
    #[must_use]
    pub fn registry(&self) -> Option<&Registry> {
        self.term.as_ref().map(|term| &term.registry)
    }

    #[must_use]
    pub fn memory(&self) -> Option<&Memory> {
        self.term.as_ref().map(|term| &term.memory)
    }

    /// What whoever asks is answered.
    #[must_use]
    pub fn explain(&self, name: &str) -> Option<String> {
        self.driver.shown.explain(name)
    }

    /// Of the last iteration that could look.
    #[must_use]
    pub fn account(&self) -> Option<Account> {
        self.driver.shown.last().map(|last| last.account.clone())
    }
}
