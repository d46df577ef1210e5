//! From a Pod to its class: every hard constraint that is understood, in canonical form, or the names
//! of those that are not.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, PodAffinityTerm, PodSpec, TopologySpreadConstraint};
use thiserror::Error;

use crate::amounts::Amounts;
use crate::class::{Class, ClassId, Lexicon, PlacementId, Spread, Term, Who};
use crate::cluster::Cluster;
use crate::labels::{Labels, Requirement, Selector, UnknownOperator};
use crate::placement::{Placement, terms};
use crate::ports::HostPort;
use crate::quantity;
use crate::requests::{self, Basis};
use crate::taints::{Taint, Toleration};
use crate::volumes::Volumes;
use crate::words::{Symbol, Words};

const DEFAULT_SCHEDULER: &str = "default-scheduler";

#[derive(Debug, Error, PartialEq, Eq)]
pub enum Error {
    /// The pod counts neither as fitting nor as needing a node.
    #[error("unsupported constraint {}", .0.join(", "))]
    Unsupported(Vec<String>),
    #[error("cannot read a resource request")]
    Request(#[source] quantity::Error),
}

/// Which of a pod's constraints matter.
enum Purpose<'a> {
    /// It is to be placed.
    Place(&'a Volumes),
    /// It has a place: only what others see of it matters.
    Bound,
}

// === impl Cluster ===

impl Cluster {
    /// The class of a pod that is to be placed.
    pub fn compile(&mut self, pod: &Pod, volumes: &Volumes) -> Result<ClassId, Error> {
        self.compile_for(pod, &Purpose::Place(volumes))
    }

    /// The class of a pod that has a node already. Where it may run no longer matters, only what it
    /// takes and whom it keeps away. Pods that have finished take nothing: they are not placed at all.
    pub fn compile_bound(&mut self, pod: &Pod) -> Result<ClassId, Error> {
        self.compile_for(pod, &Purpose::Bound)
    }

    fn compile_for(&mut self, pod: &Pod, purpose: &Purpose<'_>) -> Result<ClassId, Error> {
        let none = PodSpec::default();
        let spec = pod.spec.as_ref().unwrap_or(&none);
        let lexicon = Arc::make_mut(&mut self.lexicon);
        let (basis, placement) = match purpose {
            Purpose::Place(volumes) => {
                (Basis::Spec, placement(&mut lexicon.words, pod, spec, volumes)?)
            }
            Purpose::Bound => (Basis::Granted, Placement::default()),
        };
        let is_to_be_placed = matches!(purpose, Purpose::Place(_));
        let rules = Rules::new(lexicon, pod, spec, is_to_be_placed).map_err(unsupported)?;
        let resources = requests::of(pod, basis).map_err(Error::Request)?;
        let class = Class {
            namespace: rules.namespace,
            labels: rules.labels,
            is_terminating: pod.metadata.deletion_timestamp.is_some(),
            requests: Amounts::new(&mut lexicon.words, &resources),
            ports: HostPort::of(&mut lexicon.words, spec),
            placement: PlacementId(Arc::make_mut(&mut self.placements).intern(placement).0),
            spread: rules.spread,
            affinity: rules.affinity,
            anti_affinity: rules.anti_affinity,
        };
        Ok(self.intern_class(class))
    }
}

fn unsupported(UnknownOperator(operator): UnknownOperator) -> Error {
    Error::Unsupported(vec![format!("selector operator {operator}")])
}

/// Constraints on a pod's relation to others.
struct Rules {
    namespace: Symbol,
    labels: Labels,
    spread: Vec<Spread>,
    affinity: Vec<Term>,
    anti_affinity: Vec<Term>,
}

// === impl Rules ===

impl Rules {
    fn new(
        lexicon: &mut Lexicon,
        pod: &Pod,
        spec: &PodSpec,
        is_to_be_placed: bool,
    ) -> Result<Self, UnknownOperator> {
        let words = &mut lexicon.words;
        let mut rules = Self {
            namespace: words.intern(pod.metadata.namespace.as_deref().unwrap_or_default()),
            labels: Labels::new(words, pod.metadata.labels.as_ref()),
            spread: Vec::new(),
            affinity: Vec::new(),
            anti_affinity: Vec::new(),
        };
        let affinity = spec.affinity.as_ref();
        let anti = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref());
        let anti =
            anti.and_then(|anti| anti.required_during_scheduling_ignored_during_execution.as_ref());
        for term in anti.into_iter().flatten() {
            rules.anti_affinity.push(rules.term(words, term)?);
        }
        if !is_to_be_placed {
            return Ok(rules);
        }
        let affinity = affinity.and_then(|affinity| affinity.pod_affinity.as_ref());
        let affinity = affinity
            .and_then(|terms| terms.required_during_scheduling_ignored_during_execution.as_ref());
        for term in affinity.into_iter().flatten() {
            rules.affinity.push(rules.term(words, term)?);
        }
        for constraint in spec.topology_spread_constraints.iter().flatten() {
            if constraint.when_unsatisfiable == "DoNotSchedule" {
                rules.spread.push(rules.spread(words, constraint)?);
            }
        }
        Ok(rules)
    }

    fn term(&self, words: &mut Words, term: &PodAffinityTerm) -> Result<Term, UnknownOperator> {
        let mut selector = Selector::new(words, term.label_selector.as_ref())?;
        // API servers merge these into the selector; a pod made from a template has not met one yet.
        let alike = self.own(words, term.match_label_keys.as_ref());
        let unlike = self.own(words, term.mismatch_label_keys.as_ref());
        selector.require(alike.map(|(key, value)| Requirement::is_one_of(key, vec![value])));
        selector.require(unlike.map(|(key, value)| Requirement::is_none_of(key, vec![value])));
        let named = term.namespaces.iter().flatten();
        let named: BTreeSet<_> = named.map(|name| words.intern(name)).collect();
        let is_own = named.is_empty() && term.namespace_selector.is_none();
        let namespaces = if is_own { vec![self.namespace] } else { named.into_iter().collect() };
        let namespace_selector = Selector::new(words, term.namespace_selector.as_ref())?;
        let key = words.intern(&term.topology_key);
        Ok(Term { key, who: Who { namespaces, namespace_selector, selector } })
    }

    fn spread(
        &self,
        words: &mut Words,
        constraint: &TopologySpreadConstraint,
    ) -> Result<Spread, UnknownOperator> {
        let mut selector = Selector::new(words, constraint.label_selector.as_ref())?;
        let alike = self.own(words, constraint.match_label_keys.as_ref());
        selector.require(alike.map(|(key, value)| Requirement::is_one_of(key, vec![value])));
        let honors = |policy: &Option<String>, by_default: bool| {
            policy.as_ref().map_or(by_default, |policy| policy == "Honor")
        };
        Ok(Spread {
            key: words.intern(&constraint.topology_key),
            skew_max: constraint.max_skew.into(),
            domains_min: constraint.min_domains.map_or(1, |min| usize::try_from(min).unwrap_or(1)),
            selector,
            honors_affinity: honors(&constraint.node_affinity_policy, true),
            honors_taints: honors(&constraint.node_taints_policy, false),
        })
    }

    /// The pod's own labels of these keys; a key that it lacks asks for nothing.
    fn own(
        &self,
        words: &mut Words,
        keys: Option<&Vec<String>>,
    ) -> impl Iterator<Item = (Symbol, Symbol)> + use<> {
        let keys = keys.into_iter().flatten().map(|key| words.intern(key));
        let pairs: Vec<_> = keys.filter_map(|key| Some((key, self.labels.get(key)?))).collect();
        pairs.into_iter()
    }
}

fn placement(
    words: &mut Words,
    pod: &Pod,
    spec: &PodSpec,
    volumes: &Volumes,
) -> Result<Placement, Error> {
    let (volumes, mut unsupported) = volumes.places(words, pod);
    unsupported.extend(unsupported_of(spec));
    if !unsupported.is_empty() {
        unsupported.sort_unstable();
        return Err(Error::Unsupported(unsupported));
    }
    let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required = affinity
        .and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    let selector = spec.node_selector.iter().flatten();
    let tolerations = spec.tolerations.iter().flatten();
    let tolerations: Vec<_> = tolerations.map(|each| Toleration::new(words, each)).collect();
    let cordon = Taint::unschedulable(words);
    let name = spec.node_name.as_deref().filter(|name| !name.is_empty());
    let mut node_selector: Vec<_> =
        selector.map(|(key, value)| (words.intern(key), words.intern(value))).collect();
    node_selector.sort_unstable();
    Ok(Placement {
        node_name: name.map(|name| words.intern(name)),
        node_selector,
        affinity: required.map(|required| terms(words, required)),
        tolerates_cordon: tolerations.iter().any(|each| each.tolerates(&cordon, words)),
        tolerations,
        volumes,
    })
}

/// Hard constraints beside those of volumes that are not understood, by name.
fn unsupported_of(spec: &PodSpec) -> Vec<String> {
    let mut names = Vec::new();
    let scheduler = spec.scheduler_name.as_deref().filter(|name| !name.is_empty());
    if let Some(other) = scheduler.filter(|name| *name != DEFAULT_SCHEDULER) {
        names.push(format!("scheduler {other}"));
    }
    if spec.resource_claims.iter().flatten().next().is_some() {
        names.push("resource claims".to_owned());
    }
    if spec.scheduling_gates.iter().flatten().next().is_some() {
        names.push("scheduling gates".to_owned());
    }
    // Nodes say in their status whether they can do this.
    if spec.host_network == Some(true) && spec.host_users == Some(false) {
        names.push("user namespace on the host's network".to_owned());
    }
    names
}
