//! What would move if instances joined, left or had another weight.

use std::collections::BTreeSet;

use serde::Serialize;

use super::view::{Catalogue, View, kinds, look_up};
use super::{Admin, Error};
use crate::core::names::{InstanceId, RingName};
use crate::core::object::Object;
use crate::core::partition::Table;
use crate::core::simulate::{Change, Simulation, Trial};
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
    /// 0 where the ring has no slots.
    pub slots: usize,
    pub objects: u64,
}

// === impl Admin ===

impl Admin {
    pub async fn simulate(&self, ring: &str, changes: &[Change]) -> Result<Simulated, Error> {
        let view = self.view(self.ring(ring).await?).await?;
        let table = view.table()?.ok_or_else(|| Error::NoTable { ring: ring.to_owned() })?;
        let meant = changes.iter().map(|change| view.meant(change, &table));
        let changes: Vec<Change> = meant.collect();
        let mut trial = Trial::new(&table, &changes).map_err(Error::Change)?;
        self.count(&view, &mut trial).await?;
        Ok(Simulated::of(view.name().clone(), trial.end()))
    }

    /// Tells of all main objects, in pages.
    async fn count(&self, view: &View, trial: &mut Trial) -> Result<(), Error> {
        let spec = &view.ring.spec;
        let mut catalogue = Catalogue::new();
        look_up(&self.client, spec, &mut catalogue).await?;
        let kinds = kinds(spec, &catalogue);
        let selected: BTreeSet<String> = self.selected(spec).await?.into_iter().collect();
        let is_selected = |object: &Object| {
            object.name.namespace.as_ref().is_none_or(|namespace| selected.contains(namespace))
        };
        for resource in &spec.resources {
            let Some(served) = catalogue.get(&resource.group_resource()) else { continue };
            let objects = Objects::new(self.client.clone(), view.names.clone(), served.clone());
            let mut token: Option<String> = None;
            loop {
                let page = objects.page("", token.as_deref()).await?;
                for object in page.objects.iter().filter(|object| is_selected(object)) {
                    if let Some(key) = kinds.role(object).key() {
                        trial.count(key);
                    }
                }
                token = page.token;
                if token.is_none() {
                    break;
                }
            }
        }
        Ok(())
    }
}

// === impl View ===

impl View {
    /// An instance of weight 0 has no place in the table; when it gets a weight, it joins it.
    fn meant(&self, change: &Change, table: &Table) -> Change {
        let is_emptied = |id: &InstanceId| {
            let is_seated = table.members().iter().any(|member| member.id == *id);
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
    fn of(ring: RingName, simulation: Simulation) -> Self {
        let Simulation { moves, objects, imbalance_before, imbalance_after, writes } = simulation;
        let moved = moves.into_iter().map(|it| Moved {
            from: it.from.into(),
            to: it.to.into(),
            slots: it.slots,
            objects: it.objects,
        });
        Self { ring, objects, moves: moved.collect(), imbalance_before, imbalance_after, writes }
    }
}
