//! Things of which there are few, by number: equal things have the same one.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use crate::words::Hashing;

#[derive(Clone, Debug)]
pub(crate) struct Table<T> {
    all: Vec<Arc<T>>,
    numbers: HashMap<Arc<T>, u32, Hashing>,
}

// === impl Table ===

impl<T: Eq + Hash> Table<T> {
    /// The number of a thing, and whether it is a new one.
    pub(crate) fn intern(&mut self, thing: T) -> (u32, bool) {
        if let Some(number) = self.numbers.get(&thing) {
            return (*number, false);
        }
        let number = u32::try_from(self.all.len()).expect("things fit into memory, numbers too");
        let thing = Arc::new(thing);
        self.all.push(Arc::clone(&thing));
        self.numbers.insert(thing, number);
        (number, true)
    }

    pub(crate) fn find(&self, thing: &T) -> Option<u32> {
        self.numbers.get(thing).copied()
    }

    pub(crate) fn get(&self, number: u32) -> &Arc<T> {
        &self.all[number as usize]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Arc<T>)> {
        (0..).zip(&self.all)
    }
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { all: Vec::new(), numbers: HashMap::default() }
    }
}
