//! The naive model: what the labels would be if every event were handled at once and in order.

use labels::core::object::{Labels, Uid};

/// One key of each class.
pub(crate) const STORED: [&str; 3] = ["a", "b", "team/tier"];
pub(crate) const PREFER_LIVE: &str = "topology.kubernetes.io/zone";
pub(crate) const LIVE: &str = "topology.gke.io/zone";

/// What happened, in the order in which it did.
#[derive(Clone, Debug)]
pub(crate) enum Fact {
    Born(Uid, Labels),
    /// Someone gave the node its labels, whichever they were.
    Restored(Uid),
    Edited {
        key: String,
        value: Option<String>,
    },
    Checkpointed,
    Died,
    /// Nobody saw the death, and only a checkpoint can tell of it.
    DiedUnseen,
}

#[derive(Default)]
pub(crate) struct Model {
    pub(crate) stored: Option<Labels>,
    pub(crate) live: Option<Incarnation>,
    checkpoint: Option<Incarnation>,
}

#[derive(Clone)]
pub(crate) struct Incarnation {
    uid: Uid,
    born: Labels,
    pub(crate) labels: Labels,
    is_restored: bool,
}

// === impl Model ===

impl Model {
    pub(crate) fn of(facts: &[Fact]) -> Self {
        let mut model = Self::default();
        facts.iter().for_each(|fact| model.on(fact));
        model
    }

    fn on(&mut self, fact: &Fact) {
        match fact {
            Fact::Born(uid, labels) => {
                let (born, labels) = (labels.clone(), labels.clone());
                let is_restored = false;
                self.live = Some(Incarnation { uid: uid.clone(), born, labels, is_restored });
            }
            Fact::Restored(uid) => {
                let stored = self.stored.as_ref();
                if let Some(live) = self.live.as_mut().filter(|live| live.uid == *uid) {
                    live.labels = stored.map_or(live.born.clone(), |it| restored(it, &live.born));
                    live.is_restored = true;
                }
            }
            Fact::Edited { key, value } => {
                let labels = &mut self.live.as_mut().expect("someone was edited").labels;
                labels.remove(key);
                labels.extend(value.clone().map(|value| (key.clone(), value)));
            }
            Fact::Checkpointed => self.checkpoint.clone_from(&self.live),
            Fact::Died => {
                let live = self.live.take();
                self.store(live);
            }
            Fact::DiedUnseen => {
                let live = self.live.take().expect("someone died");
                let checkpoint = self.checkpoint.clone().filter(|it| it.uid == live.uid);
                self.store(checkpoint);
            }
        }
    }

    /// Labels that were never restored do not replace those that wait to be.
    fn store(&mut self, last: Option<Incarnation>) {
        if let Some(last) = last.filter(|last| last.is_restored || self.stored.is_none()) {
            self.stored = Some(last.labels);
        }
    }
}

/// User keys as they were, the zone unless the new machine has one, the driver's key not at all.
fn restored(stored: &Labels, born: &Labels) -> Labels {
    let mut labels = user_labels(stored);
    let zone = born.get(PREFER_LIVE).or_else(|| stored.get(PREFER_LIVE));
    labels.extend(zone.map(|zone| (PREFER_LIVE.to_owned(), zone.clone())));
    labels.extend(born.get(LIVE).map(|zone| (LIVE.to_owned(), zone.clone())));
    labels
}

pub(crate) fn user_labels(labels: &Labels) -> Labels {
    let own = labels.iter().filter(|(key, _)| STORED.contains(&key.as_str()));
    own.map(|(key, value)| (key.clone(), value.clone())).collect()
}
