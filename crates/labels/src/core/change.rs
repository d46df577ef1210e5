//! Changes of labels: restoring them to a new incarnation, amending them after a late deletion, and
//! the patch that carries them to a node.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    command::NodePatch,
    keys::{MARKER, MARKER_ANNOTATION},
    label,
    object::{Labels, LiveNode},
    policy::{Class, MarkerPlace, Policy},
    rv::ResourceVersion,
};

/// What a label's value may have.
const LABEL_CHARACTERS_MAX: usize = 63;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelChange {
    pub set: Labels,
    pub remove: BTreeSet<String>,
    /// What the API server would not take; no other label shall miss its restore for it.
    pub left_out: BTreeSet<String>,
}

/// Makes `live` what a restore gives: the stored labels, but for what the policy leaves to the new
/// node.
#[must_use]
pub fn restore(stored: &Labels, live: &Labels, policy: &Policy) -> LabelChange {
    towards(stored, live, keys_of(stored, live), policy)
}

/// Brings `labels`, which were `base` before someone edited them, to what they would be if they
/// had been `target` before: where the two differ, what still is as in `base` changes. Edits stay,
/// and repeating it changes nothing.
#[must_use]
pub fn amend(labels: &Labels, base: &Labels, target: &Labels, policy: &Policy) -> LabelChange {
    let unedited = keys_of(base, target).filter(|key| labels.get(*key) == base.get(*key));
    towards(target, labels, unedited, policy)
}

/// The patch that carries a change to a node and marks it with the snapshot's version.
#[must_use]
pub fn patch(
    live: &LiveNode,
    change: LabelChange,
    rv: &ResourceVersion,
    place: MarkerPlace,
) -> NodePatch {
    // A version too long for a label has no other place. The place that is not used is cleared:
    // what an earlier marker says there would be believed.
    let fits_label = rv.as_str().len() <= LABEL_CHARACTERS_MAX;
    let in_label = fits_label && place != MarkerPlace::Annotation;
    let in_annotation = !fits_label || place != MarkerPlace::Label;
    let marker = |is_here: bool| is_here.then(|| rv.to_string());
    let mut labels: BTreeMap<String, Option<String>> =
        change.set.into_iter().map(|(key, value)| (key, Some(value))).collect();
    labels.extend(change.remove.into_iter().map(|key| (key, None)));
    labels.insert(MARKER.to_owned(), marker(in_label));
    NodePatch {
        node: live.name.clone(),
        uid: live.uid.clone(),
        rv: live.rv.clone(),
        labels,
        annotations: [(MARKER_ANNOTATION.to_owned(), marker(in_annotation))].into(),
    }
}

/// What makes `labels` equal to `target` in these keys, as far as the policy lets it.
fn towards<'a>(
    target: &Labels,
    labels: &Labels,
    keys: impl Iterator<Item = &'a String>,
    policy: &Policy,
) -> LabelChange {
    let mut change = LabelChange::default();
    for key in keys {
        let (found, wanted) = (labels.get(key), target.get(key));
        match policy.class_of(key) {
            Class::Live => {}
            Class::PreferLive if found.is_some() => {}
            Class::PreferLive | Class::Stored => change.add(key, found, wanted),
        }
    }
    change
}

/// The keys of both but the marker's, each once.
fn keys_of<'a>(one: &'a Labels, other: &'a Labels) -> impl Iterator<Item = &'a String> {
    let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    keys.into_iter().filter(|key| *key != MARKER)
}

// === impl LabelChange ===

impl LabelChange {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.set.is_empty() && self.remove.is_empty()
    }

    #[must_use]
    pub fn applied_to(&self, labels: &Labels) -> Labels {
        let kept = labels.iter().filter(|(key, _)| !self.remove.contains(*key));
        let mut labels: Labels = kept.map(|(key, value)| (key.clone(), value.clone())).collect();
        labels.extend(self.set.clone());
        labels
    }

    fn add(&mut self, key: &str, found: Option<&String>, wanted: Option<&String>) {
        match wanted {
            Some(value) if !label::is_legal(key, value) => {
                self.left_out.insert(key.to_owned());
            }
            Some(value) if found != wanted => {
                self.set.insert(key.to_owned(), value.clone());
            }
            None if found.is_some() => {
                self.remove.insert(key.to_owned());
            }
            _ => {}
        }
    }
}
