//! What a pod asks of a node itself, whatever else runs on it: name, labels, taints, volumes.
//!
//! The answer depends on the two alone, so it is worked out once for each pair.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as core;

use crate::labels::{Labels, Requirement, Test};
use crate::node::Machine;
use crate::taints::{Taint, Toleration};
use crate::words::{Symbol, Words};

const NAME_FIELD: &str = "metadata.name";

/// The zone and region labels, old and new, each old one before its successor.
const ZONES: [(&str, &str); 2] = [
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
];

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Placement {
    pub(crate) node_name: Option<Symbol>,
    /// Sorted.
    pub(crate) node_selector: Vec<(Symbol, Symbol)>,
    /// One of them must match; absent, none need.
    pub(crate) affinity: Option<Vec<Term>>,
    pub(crate) tolerations: Vec<Toleration>,
    /// Whether cordoned nodes are tolerated.
    pub(crate) tolerates_cordon: bool,
    pub(crate) volumes: Vec<VolumePlace>,
}

/// All of it must hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Term {
    labels: Vec<Requirement>,
    /// Names the node must have, or, if not `true`, must not have.
    names: Vec<(bool, Symbol)>,
}

/// Where a bound volume can be reached from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct VolumePlace {
    pub(crate) affinity: Option<Vec<Term>>,
    pub(crate) zones: Vec<Zone>,
}

/// A zone or region label of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Zone {
    key: Symbol,
    /// Where the node does not bear the old key.
    successor: Symbol,
    /// Sorted.
    values: Vec<Symbol>,
}

/// Why a node is none for a pod, whatever else runs on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mismatch {
    Cordoned,
    Name,
    /// By its place among the node's.
    Taint(u16),
    Affinity,
    VolumeAffinity,
    VolumeZone,
}

// === impl Placement ===

impl Placement {
    pub(crate) fn check(&self, machine: &Machine, words: &Words) -> Result<(), Mismatch> {
        if machine.is_cordoned && !self.tolerates_cordon {
            return Err(Mismatch::Cordoned);
        }
        if self.node_name.is_some_and(|name| name != machine.name) {
            return Err(Mismatch::Name);
        }
        if let Some(at) = self.untolerated(machine, words) {
            return Err(Mismatch::Taint(u16::try_from(at).unwrap_or(u16::MAX)));
        }
        if !self.wants(machine, words) {
            return Err(Mismatch::Affinity);
        }
        self.volumes.iter().try_for_each(|volume| volume.check(machine, words))
    }

    /// Node selector and required node affinity.
    pub(crate) fn wants(&self, machine: &Machine, words: &Words) -> bool {
        self.node_selector.iter().all(|pair| machine.labels.contains(pair))
            && self.affinity.as_ref().is_none_or(|terms| {
                terms.iter().any(|term| term.matches(&machine.labels, Some(machine.name), words))
            })
    }

    pub(crate) fn untolerated(&self, machine: &Machine, words: &Words) -> Option<usize> {
        let is_untolerated =
            |taint: &Taint| !self.tolerations.iter().any(|each| each.tolerates(taint, words));
        machine.taints.iter().position(is_untolerated)
    }
}

// === impl Term ===

impl Term {
    /// One term of a node selector; none if it can never match.
    fn new(words: &mut Words, term: &core::NodeSelectorTerm) -> Option<Self> {
        let labels = term.match_expressions.iter().flatten();
        let labels: Option<Vec<_>> = labels.map(|each| requirement(words, each)).collect();
        let names = term.match_fields.iter().flatten();
        let names: Option<Vec<_>> = names.map(|each| name(words, each)).collect();
        let (mut labels, mut names) = (labels?, names?);
        labels.sort_unstable();
        names.sort_unstable();
        (!labels.is_empty() || !names.is_empty()).then_some(Self { labels, names })
    }

    /// Without a name, nothing is asked of it.
    fn matches(&self, labels: &Labels, name: Option<Symbol>, words: &Words) -> bool {
        self.labels.iter().all(|each| each.matches(labels, words))
            && name.is_none_or(|name| {
                self.names.iter().all(|(is_wanted, each)| (*each == name) == *is_wanted)
            })
    }
}

pub(crate) fn terms(words: &mut Words, selector: &core::NodeSelector) -> Vec<Term> {
    selector.node_selector_terms.iter().filter_map(|term| Term::new(words, term)).collect()
}

fn requirement(words: &mut Words, each: &core::NodeSelectorRequirement) -> Option<Requirement> {
    let key = words.intern(&each.key);
    let texts: Vec<&String> = each.values.iter().flatten().collect();
    let bound = || match texts.as_slice() {
        [text] => text.parse().ok(),
        _ => None,
    };
    let test = match each.operator.as_str() {
        "Exists" => Test::Exists,
        "DoesNotExist" => Test::DoesNotExist,
        "Gt" => Test::Above(bound()?),
        "Lt" => Test::Below(bound()?),
        operator @ ("In" | "NotIn") => {
            let values = texts.iter().map(|text| words.intern(text)).collect();
            let of =
                if operator == "In" { Requirement::is_one_of } else { Requirement::is_none_of };
            return Some(of(key, values));
        }
        _ => return None,
    };
    Some(Requirement { key, test })
}

fn name(words: &mut Words, each: &core::NodeSelectorRequirement) -> Option<(bool, Symbol)> {
    let [value] = each.values.as_deref()? else { return None };
    let is_wanted = match each.operator.as_str() {
        "In" => true,
        "NotIn" => false,
        _ => return None,
    };
    (each.key == NAME_FIELD).then(|| (is_wanted, words.intern(value)))
}

// === impl VolumePlace ===

impl VolumePlace {
    /// A volume is told where it may be used by labels alone: names of nodes in its terms are not
    /// looked at.
    fn check(&self, machine: &Machine, words: &Words) -> Result<(), Mismatch> {
        let can_reach = self.affinity.as_ref().is_none_or(|terms| {
            terms.iter().any(|term| term.matches(&machine.labels, None, words))
        });
        if !can_reach {
            return Err(Mismatch::VolumeAffinity);
        }
        // A node without any zone is in a cluster without zones.
        let is_in_zone = !machine.is_zoned || self.zones.iter().all(|zone| zone.holds(machine));
        if is_in_zone { Ok(()) } else { Err(Mismatch::VolumeZone) }
    }
}

// === impl Zone ===

impl Zone {
    /// The zones of a volume's labels.
    pub(crate) fn of(words: &mut Words, labels: &BTreeMap<String, String>) -> Vec<Self> {
        let keys = ZONES.iter().flat_map(|(old, new)| [(*old, *new), (*new, *new)]);
        let found = keys.filter_map(|(key, successor)| Some((key, successor, labels.get(key)?)));
        let zone = |(key, successor, value): (&str, &str, &String)| {
            // Several zones are written as one value.
            let mut values: Vec<_> = value.split("__").map(|each| words.intern(each)).collect();
            values.sort_unstable();
            Self { key: words.intern(key), successor: words.intern(successor), values }
        };
        found.map(zone).collect()
    }

    fn holds(&self, machine: &Machine) -> bool {
        let value = machine.labels.get(self.key).or_else(|| machine.labels.get(self.successor));
        value.is_some_and(|value| self.values.binary_search(&value).is_ok())
    }
}

/// Whether labels tell a zone or region at all.
pub(crate) fn is_zoned(words: &mut Words, labels: &Labels) -> bool {
    let mut keys = ZONES.iter().flat_map(|(old, new)| [*old, *new]);
    keys.any(|key| labels.get(words.intern(key)).is_some())
}
