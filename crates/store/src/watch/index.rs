//! Finds the classes of watches that want a key.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;

use super::class::Class;

/// Names a class in the hub.
pub(super) type ClassId = usize;

/// Ranges by their shape, because two shapes make up nearly all of them: single keys and prefixes
/// are found by hashing, whatever their number; only other ranges are looked at one by one.
#[derive(Debug, Default)]
pub(super) struct Index {
    keys: HashMap<Bytes, Vec<ClassId>>,
    /// By the length of the prefix.
    prefixes: BTreeMap<usize, HashMap<Bytes, Vec<ClassId>>>,
    others: Vec<Other>,
}

#[derive(Debug)]
struct Other {
    key: Bytes,
    range_end: Bytes,
    class: ClassId,
}

enum Shape {
    Key,
    Prefix,
    Other,
}

// === impl Index ===

impl Index {
    pub(super) fn insert(&mut self, id: ClassId, class: &Class) {
        let key = class.key.clone();
        match shape(class) {
            Shape::Key => self.keys.entry(key).or_default().push(id),
            Shape::Prefix => {
                self.prefixes.entry(key.len()).or_default().entry(key).or_default().push(id);
            }
            Shape::Other => {
                self.others.push(Other { key, range_end: class.range_end.clone(), class: id });
            }
        }
    }

    pub(super) fn remove(&mut self, id: ClassId, class: &Class) {
        match shape(class) {
            Shape::Key => remove_from(&mut self.keys, &class.key, id),
            Shape::Prefix => {
                let length = class.key.len();
                if let Some(prefixes) = self.prefixes.get_mut(&length) {
                    remove_from(prefixes, &class.key, id);
                    if prefixes.is_empty() {
                        self.prefixes.remove(&length);
                    }
                }
            }
            Shape::Other => self.others.retain(|other| other.class != id),
        }
    }

    /// Calls `visit` for every class whose range holds `key`.
    pub(super) fn matching(&self, key: &[u8], mut visit: impl FnMut(ClassId)) {
        self.keys.get(key).into_iter().flatten().for_each(|id| visit(*id));
        for (length, prefixes) in self.prefixes.range(..=key.len()) {
            prefixes.get(&key[..*length]).into_iter().flatten().for_each(|id| visit(*id));
        }
        for other in &self.others {
            if mvcc::KeyRange::new(&other.key, &other.range_end).contains(key) {
                visit(other.class);
            }
        }
    }
}

fn remove_from(classes: &mut HashMap<Bytes, Vec<ClassId>>, key: &Bytes, id: ClassId) {
    if let Some(ids) = classes.get_mut(key) {
        ids.retain(|other| *other != id);
        if ids.is_empty() {
            classes.remove(key);
        }
    }
}

fn shape(class: &Class) -> Shape {
    if class.range_end.is_empty() {
        Shape::Key
    } else if is_prefix(&class.key, &class.range_end) {
        Shape::Prefix
    } else {
        Shape::Other
    }
}

/// Whether `[key, range_end)` holds exactly the keys that start with `key`: the end is the key with
/// its last byte raised.
fn is_prefix(key: &[u8], range_end: &[u8]) -> bool {
    match (key.split_last(), range_end.split_last()) {
        (Some((last, head)), Some((end, end_head))) => {
            head == end_head && last.checked_add(1) == Some(*end)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use etcd_api::etcdserverpb::WatchCreateRequest;
    use mvcc::KeyRange;
    use proptest::prelude::*;

    use super::*;

    fn class(key: &[u8], range_end: &[u8]) -> Class {
        Class::new(&WatchCreateRequest {
            key: Bytes::copy_from_slice(key),
            range_end: Bytes::copy_from_slice(range_end),
            ..Default::default()
        })
    }

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop::sample::select(vec![0, 1, b'a', b'b', 0xfe, 0xff]), 1..4)
    }

    proptest! {
        #[test]
        fn finds_what_a_scan_finds(
            ranges in prop::collection::vec((bytes(), prop::option::of(bytes())), 0..20),
            gone in prop::collection::vec(any::<bool>(), 20),
            key in bytes(),
        ) {
            let classes: Vec<Class> = ranges
                .iter()
                .map(|(key, end)| class(key, end.as_deref().unwrap_or_default()))
                .collect();
            let mut index = Index::default();
            for (id, class) in classes.iter().enumerate() {
                index.insert(id, class);
            }
            for (id, class) in classes.iter().enumerate().filter(|(id, _)| gone[*id]) {
                index.remove(id, class);
            }
            let mut found = Vec::new();
            index.matching(&key, |id| found.push(id));
            found.sort_unstable();
            let scanned: Vec<ClassId> = classes
                .iter()
                .enumerate()
                .filter(|(id, class)| {
                    !gone[*id] && KeyRange::new(&class.key, &class.range_end).contains(&key)
                })
                .map(|(id, _)| id)
                .collect();
            prop_assert_eq!(found, scanned);
        }
    }
}
