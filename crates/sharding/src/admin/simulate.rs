//! What would move if instances joined, left or had another weight.

use std::collections::BTreeSet;

use serde::Serialize;

use super::view::{Catalogue, View, kinds, look_up};
use super::{Admin, Error};
use crate::core::names::{InstanceId, RingName};
use crate::core::object::Object;
use crate::core::partition::Slots;
use crate::core::simulate::{Change, Simulation, simulate};
use crate::kubernetes::Objects;

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Simulated {
    pub ring: RingName,
    /// Main objects of the ring; those they own follow them.
    pub objects: u64,
    pub moves: Vec<Moved>,
    /// Objects of the fullest instance compared with the mean.
    pub imbalance_before: f64,
    pub imbalance_after: f64,
    /// Requests to the API server, without those for owned objects.
    pub writes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Moved {
    pub from: String,
    pub to: String,
    pub slots: usize,
    pub objects: u64,
}

// === impl Admin ===

impl Admin {
    pub async fn simulate(&self, ring: &str, changes: &[Change]) -> Result<Simulated, Error> {
        let view = self.view(self.ring(ring).await?).await?;
        let table = view.table()?.ok_or_else(|| Error::NoTable { ring: ring.to_owned() })?;
        let slots = table.slots().ok_or_else(|| Error::NoSlots { ring: ring.to_owned() })?;
        let counts = self.count(&view, slots).await?;
        let changes: Vec<Change> = changes.iter().map(|change| view.meant(change, slots)).collect();
        let simulation = simulate(slots, &counts, &changes).map_err(Error::Change)?;
        Ok(Simulated::of(view.name().clone(), counts.iter().sum(), simulation))
    }

    /// How many main objects each slot has. Reads all of them, in pages.
    async fn count(&self, view: &View, slots: &Slots) -> Result<Vec<u64>, Error> {
        let spec = &view.ring.spec;
        let mut catalogue = Catalogue::new();
        look_up(&self.client, spec, &mut catalogue).await?;
        let kinds = kinds(spec, &catalogue);
        let selected: BTreeSet<String> = self.selected(spec).await?.into_iter().collect();
        let is_selected = |object: &Object| {
            object.name.namespace.as_ref().is_none_or(|namespace| selected.contains(namespace))
        };
        let mut counts = vec![0; slots.count()];
        for resource in &spec.resources {
            let Some(served) = catalogue.get(&resource.group_resource()) else { continue };
            let objects = Objects::new(self.client.clone(), view.names.clone(), served.clone());
            let mut token: Option<String> = None;
            loop {
                let page = objects.page("", token.as_deref()).await?;
                for object in page.objects.iter().filter(|object| is_selected(object)) {
                    if let Some(key) = kinds.role(object).key() {
                        counts[usize::from(slots.slot(key).0)] += 1;
                    }
                }
                token = page.token;
                if token.is_none() {
                    break;
                }
            }
        }
        Ok(counts)
    }
}

// === impl View ===

impl View {
    /// An instance of weight 0 has no place in the table; when it gets a weight, it joins it.
    fn meant(&self, change: &Change, slots: &Slots) -> Change {
        let is_emptied = |id: &InstanceId| {
            let is_seated = slots.members().iter().any(|member| member.id == *id);
            !is_seated && self.states().get(id).is_some_and(|state| state.keeps_objects())
        };
        match change {
            Change::Weigh(share) if is_emptied(&share.id) => Change::Join(share.clone()),
            other => other.clone(),
        }
    }
}

// === impl Simulated ===

impl Simulated {
    fn of(ring: RingName, objects: u64, simulation: Simulation) -> Self {
        let Simulation { moves, imbalance_before, imbalance_after, writes } = simulation;
        let moved = moves.into_iter().map(|it| Moved {
            from: it.from.into(),
            to: it.to.into(),
            slots: it.slots,
            objects: it.objects,
        });
        Self { ring, objects, moves: moved.collect(), imbalance_before, imbalance_after, writes }
    }
}
