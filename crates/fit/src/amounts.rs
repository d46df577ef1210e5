//! Resources by name, as whole numbers: cpu in thousandths, everything else in units.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Written;

use crate::quantity::{Error, Quantity};
use crate::words::{Symbol, Words};

pub(crate) const CPU: &str = "cpu";
pub(crate) const MEMORY: &str = "memory";
const EPHEMERAL_STORAGE: &str = "ephemeral-storage";
pub(crate) const PODS: &str = "pods";
pub(crate) const HUGE_PAGES: &str = "hugepages-";

/// Resources by name, added up exactly.
pub(crate) type Resources = BTreeMap<String, Quantity>;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Amounts {
    pub(crate) cpu_millis: i64,
    pub(crate) memory: i64,
    pub(crate) ephemeral_storage: i64,
    /// Huge pages and extended resources, sorted by name.
    pub(crate) others: Vec<(Symbol, i64)>,
}

/// The first resource that does not suffice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Short {
    Cpu,
    Memory,
    EphemeralStorage,
    Other(Symbol),
}

// === impl Amounts ===

impl Amounts {
    pub(crate) fn new(words: &mut Words, resources: &Resources) -> Self {
        let units = |name: &str| resources.get(name).map_or(0, |quantity| quantity.units());
        let others = resources.iter().filter(|(name, _)| is_counted(name));
        let mut others: Vec<_> =
            others.map(|(name, quantity)| (words.intern(name), quantity.units())).collect();
        others.sort_unstable();
        Self {
            cpu_millis: resources.get(CPU).map_or(0, |quantity| quantity.millis()),
            memory: units(MEMORY),
            ephemeral_storage: units(EPHEMERAL_STORAGE),
            others,
        }
    }

    pub(crate) fn add(&mut self, more: &Self) {
        self.cpu_millis = self.cpu_millis.saturating_add(more.cpu_millis);
        self.memory = self.memory.saturating_add(more.memory);
        self.ephemeral_storage = self.ephemeral_storage.saturating_add(more.ephemeral_storage);
        for (name, amount) in &more.others {
            match self.others.binary_search_by_key(name, |(name, _)| *name) {
                Ok(at) => self.others[at].1 = self.others[at].1.saturating_add(*amount),
                Err(at) => self.others.insert(at, (*name, *amount)),
            }
        }
    }

    /// Takes away what was added.
    pub(crate) fn subtract(&mut self, less: &Self) {
        self.cpu_millis -= less.cpu_millis;
        self.memory -= less.memory;
        self.ephemeral_storage -= less.ephemeral_storage;
        for (name, amount) in &less.others {
            if let Ok(at) = self.others.binary_search_by_key(name, |(name, _)| *name) {
                self.others[at].1 -= amount;
                if self.others[at].1 == 0 {
                    self.others.remove(at);
                }
            }
        }
    }

    pub(crate) fn other(&self, name: Symbol) -> i64 {
        let at = self.others.binary_search_by_key(&name, |(name, _)| *name);
        at.map_or(0, |at| self.others[at].1)
    }

    pub(crate) fn get(&self, short: Short) -> i64 {
        match short {
            Short::Cpu => self.cpu_millis,
            Short::Memory => self.memory,
            Short::EphemeralStorage => self.ephemeral_storage,
            Short::Other(name) => self.other(name),
        }
    }

    /// What of this request is not left; what is not asked for may be overdrawn.
    pub(crate) fn shortage(&self, allocatable: &Self, used: &Self) -> Option<Short> {
        let is_short = |short: &Short| {
            let wanted = self.get(*short);
            wanted > 0 && wanted > allocatable.get(*short).saturating_sub(used.get(*short))
        };
        let others = self.others.iter().map(|(name, _)| Short::Other(*name));
        [Short::Cpu, Short::Memory, Short::EphemeralStorage]
            .into_iter()
            .chain(others)
            .find(is_short)
    }
}

// === impl Short ===

impl Short {
    pub(crate) fn name(self, words: &Words) -> String {
        match self {
            Self::Cpu => CPU.to_owned(),
            Self::Memory => MEMORY.to_owned(),
            Self::EphemeralStorage => EPHEMERAL_STORAGE.to_owned(),
            Self::Other(name) => words.text(name).into_owned(),
        }
    }
}

/// Whether the scheduler counts a resource beside the three it knows. A name without a domain is
/// Kubernetes' own, and of those it counts huge pages and volumes alone.
fn is_counted(name: &str) -> bool {
    let is_extended = name.contains('/') && !name.starts_with("requests.");
    is_extended
        || name.contains("kubernetes.io/")
        || name.starts_with(HUGE_PAGES)
        || name.starts_with("attachable-volumes-")
}

pub(crate) fn parse(written: Option<&BTreeMap<String, Written>>) -> Result<Resources, Error> {
    let each =
        |(name, quantity): (&String, &Written)| Ok((name.clone(), Quantity::parse(&quantity.0)?));
    written.into_iter().flatten().map(each).collect()
}

pub(crate) fn add(to: &mut Resources, more: &Resources) {
    for (name, quantity) in more {
        let sum = to.get(name).copied().unwrap_or_default() + *quantity;
        to.insert(name.clone(), sum);
    }
}

/// Raises each to what the other has more of.
pub(crate) fn raise(to: &mut Resources, other: &Resources) {
    for (name, quantity) in other {
        let most = to.get(name).copied().map_or(*quantity, |own| own.max(*quantity));
        to.insert(name.clone(), most);
    }
}
