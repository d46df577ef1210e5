//! The objects of one kind, as last seen. Fed by one watch, read by whoever looks.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// Namespace and name; the namespace is empty for what lies in none.
pub(super) type Key = (String, String);

/// Clones are the same cache.
#[derive(Debug)]
pub(super) struct Cache<T>(Arc<Mutex<Contents<T>>>);

#[derive(Debug)]
struct Contents<T> {
    objects: BTreeMap<Key, Arc<T>>,
    /// Whether the watch follows the server now.
    is_current: bool,
}

// === impl Cache ===

impl<T> Cache<T> {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(Contents { objects: BTreeMap::new(), is_current: false })))
    }

    /// Nothing while the watch is broken: what was seen last may be long ago.
    pub(super) fn objects(&self) -> Option<Vec<Arc<T>>> {
        let contents = self.0.lock();
        contents.is_current.then(|| contents.objects.values().cloned().collect())
    }

    pub(super) fn is_current(&self) -> bool {
        self.0.lock().is_current
    }

    pub(super) fn set_current(&self, is_current: bool) {
        self.0.lock().is_current = is_current;
    }

    /// These exist and no others.
    pub(super) fn replace(&self, objects: impl Iterator<Item = (Key, T)>) {
        self.0.lock().objects = objects.map(|(key, it)| (key, Arc::new(it))).collect();
    }

    pub(super) fn get(&self, key: &Key) -> Option<Arc<T>> {
        self.0.lock().objects.get(key).cloned()
    }

    pub(super) fn set(&self, key: Key, object: T) {
        self.0.lock().objects.insert(key, Arc::new(object));
    }

    pub(super) fn remove(&self, key: &Key) {
        self.0.lock().objects.remove(key);
    }
}

impl<T> Clone for Cache<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}
