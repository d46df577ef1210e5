//! A class of pods: all that decides where a pod can run and whom it keeps away. Pods of one class
//! are the same to every rule.

use std::collections::HashMap;

use crate::amounts::Amounts;
use crate::labels::{Labels, Selector};
use crate::ports::HostPort;
use crate::words::{Hashing, Symbol, Words};

/// A class of a [`Cluster`](crate::Cluster) and its forks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(pub(crate) u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PlacementId(pub(crate) u32);

/// Words, and what is known of namespaces.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lexicon {
    pub(crate) words: Words,
    pub(crate) namespaces: HashMap<Symbol, Labels, Hashing>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Class {
    pub(crate) namespace: Symbol,
    pub(crate) labels: Labels,
    /// On its way out: it still takes room and keeps others away, but spreading ignores it.
    pub(crate) is_terminating: bool,
    pub(crate) requests: Amounts,
    pub(crate) ports: Vec<HostPort>,
    pub(crate) placement: PlacementId,
    pub(crate) spread: Vec<Spread>,
    pub(crate) affinity: Vec<Term>,
    pub(crate) anti_affinity: Vec<Term>,
}

/// A hard topology spread constraint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Spread {
    pub(crate) key: Symbol,
    pub(crate) skew_max: i64,
    pub(crate) domains_min: usize,
    pub(crate) selector: Selector,
    /// Whether nodes that the pod's affinity rules out are left aside.
    pub(crate) honors_affinity: bool,
    /// Whether nodes whose taints the pod does not tolerate are left aside.
    pub(crate) honors_taints: bool,
}

/// A required term of pod affinity or anti-affinity.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Term {
    pub(crate) key: Symbol,
    pub(crate) who: Who,
}

/// Which pods a term is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Who {
    /// Sorted.
    pub(crate) namespaces: Vec<Symbol>,
    /// Namespaces beside those named.
    pub(crate) namespace_selector: Selector,
    pub(crate) selector: Selector,
}

// === impl Who ===

impl Who {
    pub(crate) fn matches(&self, class: &Class, lexicon: &Lexicon) -> bool {
        self.holds_namespace(class.namespace, lexicon)
            && self.selector.matches(&class.labels, &lexicon.words)
    }

    fn holds_namespace(&self, namespace: Symbol, lexicon: &Lexicon) -> bool {
        if self.namespaces.binary_search(&namespace).is_ok() {
            return true;
        }
        let labels = lexicon.namespaces.get(&namespace);
        match labels {
            Some(labels) => self.namespace_selector.matches(labels, &lexicon.words),
            None => self.namespace_selector.is_everything(),
        }
    }
}
