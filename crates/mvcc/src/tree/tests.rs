//! The shape of the tree, which nothing outside can see: order, sizes, summaries.

use std::collections::BTreeMap;

use proptest::{collection::vec, prelude::*, sample::Index};

use super::*;
use crate::{LeaseId, Position, entry::Version};

/// Few enough that removals find keys and nodes run empty, enough for three levels.
const KEYS: u16 = 4000;

#[derive(Clone, Debug)]
enum Change {
    /// So many keys from the given one on, each live or a tombstone.
    Insert(u16, u16, bool),
    Remove(u16, u16),
}

fn change() -> impl Strategy<Value = Change> {
    let run = || (0..KEYS, prop_oneof![4 => 1_u16..40, 1 => 40_u16..1500]);
    prop_oneof![
        3 => (run(), any::<bool>()).prop_map(|((from, len), live)| Change::Insert(from, len, live)),
        2 => run().prop_map(|(from, len)| Change::Remove(from, len)),
    ]
}

/// A tree beside the map that it should equal.
#[derive(Clone, Default)]
struct Pair {
    tree: Tree,
    map: BTreeMap<Key, (Revision, bool)>,
    revision: i64,
}

// === impl Pair ===

impl Pair {
    fn apply(&mut self, change: &Change) {
        match *change {
            Change::Insert(from, len, is_live) => {
                (from..from.saturating_add(len)).for_each(|n| self.insert(key(n), is_live));
            }
            // Downwards, so that nodes lose their first keys last.
            Change::Remove(from, len) => (from..from.saturating_add(len)).rev().for_each(|n| {
                self.tree.remove(&key(n));
                self.map.remove(&key(n));
            }),
        }
    }

    fn insert(&mut self, key: Key, is_live: bool) {
        self.revision += 1;
        let revision = Revision(self.revision);
        let newest = Version {
            position: Position::first_of(revision),
            created: revision,
            version: i64::from(is_live),
            lease: LeaseId::NONE,
        };
        self.map.insert(key.clone(), (revision, is_live));
        self.tree.insert(Arc::new(Entry::first(key, newest)));
    }

    fn check(&self) {
        let mut entries = Vec::new();
        if let Some(root) = &self.tree.root {
            check_child(root, None, &mut entries);
            assert!(root.only_child().is_none(), "the root is no higher than needed");
        }
        let shown: Vec<_> = entries
            .iter()
            .map(|entry| (entry.key.clone(), (entry.newest.position.revision, entry.is_live())))
            .collect();
        assert_eq!(shown, self.map.clone().into_iter().collect::<Vec<_>>());
    }

    fn check_count(&self, from: u16, to: u16) {
        let (from, to) = (key(from), key(to));
        let is_inside = |key: &Key| from <= *key && *key < to;
        let expected =
            self.map.iter().filter(|(key, (_, is_live))| *is_live && is_inside(key)).count();
        let range = KeyRange::new(&from, &to);
        assert_eq!(self.tree.count(range, Revision(self.revision)), expected);
    }
}

fn key(n: u16) -> Key {
    Arc::from(n.to_be_bytes().as_slice())
}

/// Checks a subtree, whose keys lie before `before`, and gathers its entries. Returns its depth.
fn check_child(child: &Child, before: Option<&Key>, entries: &mut Vec<Arc<Entry>>) -> usize {
    let begin = entries.len();
    assert!((1..=NODE_LEN).contains(&child.node.len()), "a node is neither empty nor too large");
    let depth = match &*child.node {
        Node::Leaf(leaf) => {
            entries.extend(leaf.iter().cloned());
            0
        }
        Node::Inner(children) => check_children(children, before, entries),
    };
    let below = &entries[begin..];
    assert!(below.iter().all(|entry| child.first <= entry.key), "no key is below the first");
    assert!(below.iter().all(|entry| before.is_none_or(|before| entry.key < *before)));
    assert!(below.is_sorted_by(|a, b| a.key < b.key));
    assert_eq!(child.summary.live, below.iter().filter(|entry| entry.is_live()).count());
    assert!(below.iter().all(|entry| entry.newest.position.revision <= child.summary.newest));
    depth
}

fn check_children(
    children: &[Child],
    before: Option<&Key>,
    entries: &mut Vec<Arc<Entry>>,
) -> usize {
    let nexts = children.iter().skip(1).map(|next| Some(&next.first)).chain([before]);
    let depths: Vec<usize> =
        children.iter().zip(nexts).map(|(child, next)| check_child(child, next, entries)).collect();
    assert!(depths.iter().all(|depth| *depth == depths[0]), "all leaves are equally deep");
    depths[0] + 1
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn holds_its_shape(changes in vec(change(), 1..60), counts in vec((0..KEYS, 0..KEYS), 20)) {
        let mut pair = Pair::default();
        for change in &changes {
            pair.apply(change);
            pair.check();
        }
        for (from, to) in counts {
            pair.check_count(from, to);
        }
    }

    #[test]
    fn clones_do_not_see_later_changes(
        changes in vec(change(), 1..30),
        taken_at in any::<Index>(),
    ) {
        let mut pair = Pair::default();
        let mut clones = Vec::new();
        for (i, change) in changes.iter().enumerate() {
            if i >= taken_at.index(changes.len()) {
                clones.push(pair.clone());
            }
            pair.apply(change);
        }
        clones.iter().for_each(Pair::check);
    }
}

/// Ascending insertion is how most stores are filled; nodes must not stay half empty then.
#[test]
fn ascending_keys_fill_nodes() {
    let mut pair = Pair::default();
    pair.apply(&Change::Insert(0, KEYS, true));
    pair.check();
    let mut leaves = 0;
    count_leaves(pair.tree.root.as_ref().unwrap(), &mut leaves);
    assert!(usize::from(KEYS) / leaves >= NODE_LEN * 7 / 10, "{leaves} leaves");
}

fn count_leaves(child: &Child, leaves: &mut usize) {
    match &*child.node {
        Node::Leaf(_) => *leaves += 1,
        Node::Inner(children) => children.iter().for_each(|child| count_leaves(child, leaves)),
    }
}

#[test]
fn emptied_it_is_as_new() {
    let mut pair = Pair::default();
    pair.apply(&Change::Insert(0, KEYS, true));
    pair.apply(&Change::Remove(0, KEYS));
    assert!(pair.tree.root.is_none());
    pair.apply(&Change::Insert(7, 1, true));
    pair.check();
}
