//! One ring as it stands: the Ring, and its instances by their Leases.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;

use super::Error;
use crate::core::key::{Kinds, MainKind};
use crate::core::lease::Lease;
use crate::core::membership::{Member, Roster, State};
use crate::core::names::{InstanceId, Names, RingName};
use crate::core::partition::{Ring as HashRing, Share, Table};
use crate::core::spec::{Algorithm, Controlled, GroupResource, Resource, Spec};
use crate::core::time::{Moment, Now};
use crate::kubernetes::{Leases, READ_TIMEOUT, Ring, Served, discover};

pub(super) struct View {
    pub(super) ring: Ring,
    pub(super) names: Names,
    pub(super) roster: Roster,
    pub(super) leases: Vec<Lease>,
    /// What cannot be read, and why.
    pub(super) problems: Vec<String>,
    pub(super) now: Now,
}

/// The resources of rings that the server serves.
pub(super) type Catalogue = BTreeMap<GroupResource, Served>;

// === impl View ===

impl View {
    pub(super) async fn read(client: &Client, ring: Ring, now: Timestamp) -> Result<Self, Error> {
        let name = ring.name().map_err(|source| {
            let ring = ring.metadata.name.clone().unwrap_or_default();
            Error::Ring { ring, source }
        })?;
        let leases = Leases::new(client.clone(), ring.spec.names(name), READ_TIMEOUT);
        let (mut read, mut problems) = (Vec::new(), Vec::new());
        for stored in leases.list().await?.0 {
            match leases.read(&stored) {
                Ok(lease) => read.push(lease),
                Err(problem) => {
                    let name = stored.metadata.name.unwrap_or_default();
                    problems.push(format!("Lease {name}: {problem}"));
                }
            }
        }
        Ok(Self::new(ring, read, problems, now))
    }

    pub(super) fn new(
        ring: Ring,
        leases: Vec<Lease>,
        problems: Vec<String>,
        now: Timestamp,
    ) -> Self {
        let name = ring.name().expect("whoever made the view has read the name");
        let names = ring.spec.names(name);
        let mut roster = Roster::new(names.sharder_holder(), ring.spec.restart.hold_max());
        for lease in &leases {
            // Silent since the renewal: there was no earlier look that could tell better.
            roster.on_seen(lease.clone(), moment(lease.renewed.unwrap_or(now)));
        }
        let now = Now { mono: moment(now), wall: now };
        Self { ring, names, roster, leases, problems, now }
    }

    pub(super) fn name(&self) -> &RingName {
        self.names.ring()
    }

    pub(super) fn members(&self) -> Vec<Member> {
        self.roster.members(self.now)
    }

    pub(super) fn states(&self) -> BTreeMap<InstanceId, State> {
        let members = self.members().into_iter();
        members.map(|member| (member.id, member.standing.state)).collect()
    }

    /// As it was kept; where nothing is kept, as the instances make it. None before the first.
    pub(super) fn table(&self) -> Result<Option<Table>, Error> {
        if self.ring.spec.partitioning.algorithm == Algorithm::Ring {
            return Ok(Some(Table::Ring(HashRing::new(&self.shares()))));
        }
        let kept = self.ring.status.as_ref().and_then(|status| status.table.as_ref());
        let slots = kept.map(|kept| kept.read()).transpose();
        let slots =
            slots.map_err(|source| Error::Table { ring: self.name().to_string(), source })?;
        Ok(slots.map(Table::Slots))
    }

    fn shares(&self) -> Vec<Share> {
        let live = self.members().into_iter().filter(|it| it.standing.state.keeps_objects());
        live.map(|member| Share { id: member.id, weight: member.weight }).collect()
    }
}

/// Looks up what is not known yet. What the server does not serve stays unknown.
pub(super) async fn look_up(
    client: &Client,
    spec: &Spec,
    catalogue: &mut Catalogue,
) -> Result<(), Error> {
    for resource in resources(spec) {
        if catalogue.contains_key(&resource) {
            continue;
        }
        if let Some(served) = discover(client, &resource).await? {
            catalogue.insert(resource, served);
        }
    }
    Ok(())
}

/// Main and controlled, each once.
pub(super) fn resources(spec: &Spec) -> Vec<GroupResource> {
    let main = spec.resources.iter().map(Resource::group_resource);
    let controlled = spec.resources.iter().flat_map(|main| &main.controlled);
    let mut all: Vec<GroupResource> =
        main.chain(controlled.map(Controlled::group_resource)).collect();
    all.sort();
    all.dedup();
    all
}

/// The kinds of the ring, as far as the server has them.
pub(super) fn kinds(spec: &Spec, catalogue: &Catalogue) -> Kinds {
    let main = spec.resources.iter().filter_map(|resource| {
        let served = catalogue.get(&resource.group_resource())?;
        let controlled = resource.controlled.iter();
        let controlled =
            controlled.filter_map(|it| Some(catalogue.get(&it.group_resource())?.kind.clone()));
        let kind = MainKind {
            key: resource.key,
            is_namespaced: served.is_namespaced,
            controlled: controlled.collect(),
        };
        Some((served.kind.clone(), kind))
    });
    Kinds { main: main.collect(), ..Kinds::default() }
}

/// The wall clock in the place of the one that never jumps.
fn moment(at: Timestamp) -> Moment {
    Moment(Duration::try_from(at.duration_since(Timestamp::UNIX_EPOCH)).unwrap_or(Duration::ZERO))
}
