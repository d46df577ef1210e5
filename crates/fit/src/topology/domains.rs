//! The values of one topology key, as numbers, and which node has which.

use std::collections::HashMap;

use crate::words::{Hashing, Symbol};

/// Of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Domain(u32);

#[derive(Clone, Debug, Default)]
pub(super) struct Domains {
    numbers: HashMap<Symbol, Domain, Hashing>,
    by_node: Vec<Option<Domain>>,
}

// === impl Domain ===

impl Domain {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

// === impl Domains ===

impl Domains {
    pub(super) fn of_node(&self, slot: usize) -> Option<Domain> {
        self.by_node[slot]
    }

    pub(super) fn add_node(&mut self, value: Option<Symbol>) {
        let next = Domain(u32::try_from(self.numbers.len()).expect("there are fewer than symbols"));
        let domain = value.map(|value| *self.numbers.entry(value).or_insert(next));
        self.by_node.push(domain);
    }

    pub(super) fn remove_node(&mut self, slot: usize) {
        self.by_node[slot] = None;
    }
}

/// Counts by domain; what was never counted is 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Counts(Vec<u32>);

// === impl Counts ===

impl Counts {
    pub(super) fn get(&self, domain: Domain) -> u32 {
        self.0.get(domain.index()).copied().unwrap_or_default()
    }

    /// The count, to be changed.
    pub(super) fn entry(&mut self, domain: Domain) -> &mut u32 {
        if self.0.len() <= domain.index() {
            self.0.resize(domain.index() + 1, 0);
        }
        &mut self.0[domain.index()]
    }
}
