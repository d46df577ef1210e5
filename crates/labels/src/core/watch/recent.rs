//! The last things seen, for questions of the kind "was this there?". It never grows beyond its
//! bound: the oldest is forgotten first.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

/// The last `max` different values.
#[derive(Debug)]
pub struct Recent<T> {
    max: usize,
    known: BTreeSet<Arc<T>>,
    /// Oldest first.
    order: VecDeque<Arc<T>>,
}

// === impl Recent ===

impl<T: Ord> Recent<T> {
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self { max, known: BTreeSet::new(), order: VecDeque::new() }
    }

    /// Remembers a value. One that is known already keeps its age.
    pub fn insert(&mut self, value: T) {
        if self.known.contains(&value) {
            return;
        }
        let value = Arc::new(value);
        self.known.insert(value.clone());
        self.order.push_back(value);
        if self.order.len() > self.max
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    /// Forgets a value. Rare, so it may look through all of them.
    pub fn remove(&mut self, value: &T) {
        if self.known.remove(value) {
            self.order.retain(|known| **known != *value);
        }
    }

    #[must_use]
    pub fn contains(&self, value: &T) -> bool {
        self.known.contains(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten_first() {
        let mut recent = Recent::new(2);
        for value in [1, 2, 1, 3] {
            recent.insert(value);
        }
        let known: Vec<_> = (1..=3).filter(|value| recent.contains(value)).collect();
        assert_eq!(known, [2, 3]);
    }

    #[test]
    fn what_was_removed_is_new_again() {
        let mut recent = Recent::new(2);
        recent.insert(1);
        recent.insert(2);
        recent.remove(&1);
        assert!(!recent.contains(&1));
        recent.insert(1);
        recent.insert(3);
        let known: Vec<_> = (1..=3).filter(|value| recent.contains(value)).collect();
        assert_eq!(known, [1, 3]);
    }
}
