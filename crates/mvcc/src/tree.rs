//! The ordered index: an immutable B+ tree of entries that knows the size of its subtrees.
//!
//! Cloning a tree is one reference count. A change copies the nodes on its path that a clone still
//! shares and changes the others in place, so a batch of writes between two clones pays for each
//! node once. Every child carries a [`Summary`], which makes counting O(log n) and lets reads skip
//! subtrees without live keys.

use std::{ops::ControlFlow, sync::Arc};

use crate::{
    Revision,
    entry::Entry,
    key::{Key, KeyRange},
};

/// Fan-out. Copying a shared path costs about `depth × NODE_LEN` reference counts.
const NODE_LEN: usize = 32;

/// A node this small is joined with a neighbour that has room.
const NODE_LEN_MIN: usize = NODE_LEN / 4;

#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    root: Option<Child>,
}

#[derive(Clone, Debug)]
enum Node {
    Leaf(Vec<Arc<Entry>>),
    Inner(Vec<Child>),
}

#[derive(Clone, Debug)]
struct Child {
    /// The smallest key below, or a smaller one that was removed since.
    first: Key,
    summary: Summary,
    node: Arc<Node>,
}

/// What is below a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Summary {
    /// Keys that exist at the newest revision.
    live: usize,
    /// No key below changed after this revision.
    newest: Revision,
}

/// How an insertion or removal changed a subtree.
struct Changed {
    live_before: usize,
    live_after: usize,
    /// The upper half, if the node had to be split.
    split: Option<Child>,
}

// === impl Tree ===

impl Tree {
    pub(crate) fn get(&self, key: &[u8]) -> Option<&Arc<Entry>> {
        let mut node = &self.root.as_ref()?.node;
        loop {
            match &**node {
                Node::Inner(children) => node = &children[child_index(children, key)].node,
                Node::Leaf(entries) => return entry_index(entries, key).ok().map(|i| &entries[i]),
            }
        }
    }

    /// Puts `entry` in the place of the one with its key, if there is one.
    pub(crate) fn insert(&mut self, entry: Arc<Entry>) {
        let Some(root) = &mut self.root else {
            self.root = Some(Child::new(Node::Leaf(vec![entry])));
            return;
        };
        if let Some(upper) = root.insert(entry) {
            let lower = root.clone();
            *root = Child::new(Node::Inner(vec![lower, upper]));
        }
    }

    pub(crate) fn remove(&mut self, key: &[u8]) {
        let Some(root) = &mut self.root else { return };
        root.remove(key);
        while let Some(child) = root.only_child() {
            *root = child;
        }
        if root.node.is_empty() {
            self.root = None;
        }
    }

    /// The number of keys of `range` that existed at `at`.
    pub(crate) fn count(&self, range: KeyRange<'_>, at: Revision) -> usize {
        self.root.as_ref().map_or(0, |root| root.count(range, None, at))
    }

    /// Visits, in key order, the entries of `range` that may have existed at `at`, until `visit`
    /// breaks. Entries whose key did not exist then may be visited too.
    pub(crate) fn walk<'t>(
        &'t self,
        range: KeyRange<'_>,
        at: Revision,
        visit: &mut dyn FnMut(&'t Arc<Entry>) -> ControlFlow<()>,
    ) {
        if let Some(root) = &self.root {
            // Whether the visit was cut short is known to whoever cut it.
            let (ControlFlow::Continue(()) | ControlFlow::Break(())) = root.walk(range, at, visit);
        }
    }
}

// === impl Child ===

impl Child {
    fn new(node: Node) -> Self {
        let (first, summary) = match &node {
            Node::Leaf(entries) => (
                entries[0].key.clone(),
                entries
                    .iter()
                    .map(|entry| Summary::of(entry))
                    .fold(Summary::default(), Summary::with),
            ),
            Node::Inner(children) => (
                children[0].first.clone(),
                children.iter().map(|child| child.summary).fold(Summary::default(), Summary::with),
            ),
        };
        Self { first, summary, node: Arc::new(node) }
    }

    /// Inserts below, and returns the upper half if this child had to be split.
    fn insert(&mut self, entry: Arc<Entry>) -> Option<Self> {
        let newest = entry.newest.position.revision;
        if entry.key < self.first {
            self.first = entry.key.clone();
        }
        let changed = match Arc::make_mut(&mut self.node) {
            Node::Leaf(entries) => insert_into_leaf(entries, entry),
            Node::Inner(children) => insert_into_inner(children, entry),
        };
        self.summary.newest = self.summary.newest.max(newest);
        self.summary.live = self.summary.live + changed.live_after - changed.live_before;
        if let Some(split) = &changed.split {
            self.summary.live -= split.summary.live;
        }
        changed.split
    }

    /// Removes below; returns the number of live keys that went.
    fn remove(&mut self, key: &[u8]) -> usize {
        let gone = match Arc::make_mut(&mut self.node) {
            Node::Leaf(entries) => match entry_index(entries, key) {
                Ok(i) => usize::from(entries.remove(i).is_live()),
                Err(_) => 0,
            },
            Node::Inner(children) => remove_from_inner(children, key),
        };
        self.summary.live -= gone;
        gone
    }

    /// `before` is the smallest key right of this child, which tells whether the range covers it.
    fn count(&self, range: KeyRange<'_>, before: Option<&[u8]>, at: Revision) -> usize {
        let is_covered =
            range.start() <= &*self.first && before.is_some_and(|before| !range.is_past(before));
        if is_covered && self.summary.newest <= at {
            return self.summary.live;
        }
        match &*self.node {
            Node::Leaf(entries) => {
                entries_in(entries, range).filter(|entry| entry.at(at).is_some()).count()
            }
            Node::Inner(children) => {
                let from = child_index(children, range.start());
                let mut count = 0;
                for (i, child) in children.iter().enumerate().skip(from) {
                    if range.is_past(&child.first) {
                        break;
                    }
                    let before = children.get(i + 1).map(|next| &*next.first).or(before);
                    count += child.count(range, before, at);
                }
                count
            }
        }
    }

    fn walk<'t>(
        &'t self,
        range: KeyRange<'_>,
        at: Revision,
        visit: &mut dyn FnMut(&'t Arc<Entry>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if self.summary.live == 0 && self.summary.newest <= at {
            return ControlFlow::Continue(());
        }
        match &*self.node {
            Node::Leaf(entries) => entries_in(entries, range).try_for_each(visit),
            Node::Inner(children) => children[child_index(children, range.start())..]
                .iter()
                .take_while(|child| !range.is_past(&child.first))
                .try_for_each(|child| child.walk(range, at, visit)),
        }
    }

    fn only_child(&self) -> Option<Self> {
        match &*self.node {
            Node::Inner(children) if children.len() == 1 => Some(children[0].clone()),
            _ => None,
        }
    }

    /// Joins the node with its right neighbour; both are of the same depth.
    fn join(&self, right: &Self) -> Self {
        let node = match (&*self.node, &*right.node) {
            (Node::Leaf(a), Node::Leaf(b)) => Node::Leaf(a.iter().chain(b).cloned().collect()),
            (Node::Inner(a), Node::Inner(b)) => Node::Inner(a.iter().chain(b).cloned().collect()),
            _ => unreachable!("neighbours are of the same depth"),
        };
        let summary = self.summary.with(right.summary);
        Self { first: self.first.clone(), summary, node: Arc::new(node) }
    }
}

// === impl Node ===

impl Node {
    fn len(&self) -> usize {
        match self {
            Self::Leaf(entries) => entries.len(),
            Self::Inner(children) => children.len(),
        }
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

// === impl Summary ===

impl Summary {
    fn of(entry: &Entry) -> Self {
        Self { live: usize::from(entry.is_live()), newest: entry.newest.position.revision }
    }

    fn with(self, other: Self) -> Self {
        Self { live: self.live + other.live, newest: self.newest.max(other.newest) }
    }
}

/// The child that holds `key`, or the place where it belongs.
fn child_index(children: &[Child], key: &[u8]) -> usize {
    children.partition_point(|child| &*child.first <= key).saturating_sub(1)
}

fn entry_index(entries: &[Arc<Entry>], key: &[u8]) -> Result<usize, usize> {
    entries.binary_search_by(|entry| (*entry.key).cmp(key))
}

fn entries_in<'t>(
    entries: &'t [Arc<Entry>],
    range: KeyRange<'_>,
) -> impl Iterator<Item = &'t Arc<Entry>> {
    let from = entries.partition_point(|entry| &*entry.key < range.start());
    entries[from..].iter().take_while(move |entry| !range.is_past(&entry.key))
}

fn insert_into_leaf(entries: &mut Vec<Arc<Entry>>, entry: Arc<Entry>) -> Changed {
    let live_after = usize::from(entry.is_live());
    let live_before = match entry_index(entries, &entry.key) {
        Ok(i) => usize::from(std::mem::replace(&mut entries[i], entry).is_live()),
        Err(i) => {
            entries.insert(i, entry);
            0
        }
    };
    let split = (entries.len() > NODE_LEN)
        .then(|| Child::new(Node::Leaf(entries.split_off(split_point(entries.len())))));
    Changed { live_before, live_after, split }
}

fn insert_into_inner(children: &mut Vec<Child>, entry: Arc<Entry>) -> Changed {
    let i = child_index(children, &entry.key);
    let live_before = children[i].summary.live;
    let split = children[i].insert(entry);
    let live_after =
        children[i].summary.live + split.as_ref().map_or(0, |split| split.summary.live);
    if let Some(split) = split {
        children.insert(i + 1, split);
    }
    let split = (children.len() > NODE_LEN)
        .then(|| Child::new(Node::Inner(children.split_off(split_point(children.len())))));
    Changed { live_before, live_after, split }
}

/// Keys often arrive in order, so the lower half keeps more: nodes end up three quarters full
/// instead of half.
fn split_point(len: usize) -> usize {
    len * 3 / 4
}

fn remove_from_inner(children: &mut Vec<Child>, key: &[u8]) -> usize {
    let i = child_index(children, key);
    let gone = children[i].remove(key);
    if children[i].node.is_empty() {
        children.remove(i);
    } else if children[i].node.len() < NODE_LEN_MIN {
        join_with_neighbour(children, i);
    }
    gone
}

fn join_with_neighbour(children: &mut Vec<Child>, i: usize) {
    let left = if i + 1 < children.len() { i } else { i.saturating_sub(1) };
    let [a, b] = match children.get(left..left + 2) {
        Some([a, b]) => [a, b],
        _ => return,
    };
    if a.node.len() + b.node.len() <= NODE_LEN {
        children[left] = a.join(b);
        children.remove(left + 1);
    }
}

#[cfg(test)]
mod tests;
