//! How many pods of a kind run in each domain of a key: what affinity and anti-affinity ask.

use crate::class::{Class, Lexicon, Term, Who};
use crate::words::Symbol;

use super::KeyId;
use super::domains::{Counts, Domain};

/// What is counted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Question {
    /// Pods that all of these are about.
    About { key: Symbol, all: Vec<Who> },
    /// Pods that keep others away by this term.
    Holding(Term),
}

#[derive(Clone, Debug)]
pub(crate) struct Tally {
    pub(super) key: KeyId,
    counts: Counts,
    total: u64,
}

// === impl Question ===

impl Question {
    pub(super) fn key(&self) -> Symbol {
        match self {
            Self::About { key, .. } => *key,
            Self::Holding(term) => term.key,
        }
    }

    pub(super) fn counts(&self, class: &Class, lexicon: &Lexicon) -> bool {
        match self {
            Self::About { all, .. } => all.iter().all(|who| who.matches(class, lexicon)),
            Self::Holding(term) => class.anti_affinity.contains(term),
        }
    }

    /// Whether those counted keep this class away.
    pub(super) fn repels(&self, class: &Class, lexicon: &Lexicon) -> bool {
        match self {
            Self::About { .. } => false,
            Self::Holding(term) => term.who.matches(class, lexicon),
        }
    }
}

// === impl Tally ===

impl Tally {
    pub(super) fn new(key: KeyId) -> Self {
        Self { key, counts: Counts::default(), total: 0 }
    }

    pub(crate) fn key(&self) -> KeyId {
        self.key
    }

    pub(crate) fn count(&self, domain: Domain) -> u32 {
        self.counts.get(domain)
    }

    /// Over all domains.
    pub(crate) fn is_empty(&self) -> bool {
        self.total == 0
    }

    pub(super) fn add(&mut self, domain: Domain, pods: u32) {
        *self.counts.entry(domain) += pods;
        self.total += u64::from(pods);
    }

    pub(super) fn subtract(&mut self, domain: Domain, pods: u32) {
        *self.counts.entry(domain) -= pods;
        self.total -= u64::from(pods);
    }
}
