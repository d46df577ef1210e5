//! Joining: what is read before the Lease is asked for.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Client;

use super::desk::Clock;
use super::driver::Driver;
use super::error::Error;
use super::kind::{Kind, Selectors};
use super::lease::OwnLease;
use super::standing::Standing;
use super::stateful_set::StatefulSet;
use super::{Desk, JoinOptions, Pod, Seat, lifecycle};
use crate::clock;
use crate::core::fence;
use crate::core::instance::{Identity, Instance, Options};
use crate::core::names::{Names, RingName};
use crate::core::spec::Spec;
use crate::kubernetes::{Rings, discover};

/// What was learnt about the ring and the instance's place in it.
struct Findings {
    core: Options,
    of_ring: Vec<Arc<Kind>>,
    stateful_set: Option<StatefulSet>,
    /// Whose end is the Lease's end too.
    owner: Option<OwnerReference>,
}

/// Takes a place in the ring; it need not work yet.
pub(super) async fn join(client: Client, options: JoinOptions) -> Result<Seat, Error> {
    options.check()?;
    let (ring, id) = (options.ring_name()?, options.instance_id()?);
    let spec = read_ring(&client, &ring).await?;
    let names = spec.names(ring);
    let of_ring = main_kinds(&client, &names, &spec).await?;
    let namespace = options.namespace.clone();
    let identity = Identity {
        names,
        id,
        namespace: namespace.unwrap_or_else(|| client.default_namespace().to_owned()),
        incarnation: incarnation(),
        pod: options.pod.as_ref().map(Pod::mark),
        weight: options.weight,
    };
    let stateful_set = options.stateful_set.clone();
    let stateful_set =
        stateful_set.map(|name| StatefulSet::new(client.clone(), &identity.namespace, name));
    let owner = owner(&options, stateful_set.as_ref()).await?;
    let core = Options { identity, duration: options.duration, grace: spec.handover.grace() };
    Ok(sit(client, options, Findings { core, of_ring, stateful_set, owner }))
}

/// Begins to ask for the Lease.
fn sit(client: Client, options: JoinOptions, findings: Findings) -> Seat {
    let Findings { core, of_ring, stateful_set, owner } = findings;
    let Identity { names, id, incarnation, .. } = core.identity.clone();
    let JoinOptions { duration, metrics, lease_client, .. } = options;
    let lease_client = lease_client.unwrap_or_else(|| client.clone());
    let lease =
        OwnLease::new(lease_client, core.identity.clone(), owner, (duration, metrics.clone()));
    let clock: Clock = Arc::new(|| clock::now(jiff::Timestamp::now));
    let engine = Instance::new(core, clock().mono);
    let desk = Desk::new(engine, clock, metrics, fence::name(names.ring()));
    let standing = Arc::new(Standing::default());
    let driver = Driver {
        desk: Arc::clone(&desk),
        standing: Arc::clone(&standing),
        lease: Arc::new(lease),
        client,
        names: names.clone(),
        selectors: Selectors::new(&names, &id),
        of_ring,
    };
    let keeping = lifecycle::keep(driver.run());
    Seat { names, id, incarnation, stateful_set, desk, standing, _keeping: keeping }
}

async fn read_ring(client: &Client, ring: &RingName) -> Result<Spec, Error> {
    let read = Rings::new(client.clone()).get(ring.as_str()).await;
    let read = read.map_err(|source| Error::ReadRing { ring: ring.to_string(), source })?;
    read.map(|ring| ring.spec).ok_or_else(|| Error::NoRing(ring.to_string()))
}

/// Kinds that the server does not serve have no objects that could carry our id.
async fn main_kinds(client: &Client, names: &Names, spec: &Spec) -> Result<Vec<Arc<Kind>>, Error> {
    let mut kinds = Vec::new();
    for resource in &spec.resources {
        let served = discover(client, &resource.group_resource()).await;
        let served =
            served.map_err(|source| Error::Discover { ring: names.ring().to_string(), source })?;
        let kind = served.map(|served| Kind::served(client.clone(), names.clone(), served));
        kinds.extend(kind.map(Arc::new));
    }
    Ok(kinds)
}

async fn owner(
    options: &JoinOptions,
    stateful_set: Option<&StatefulSet>,
) -> Result<Option<OwnerReference>, Error> {
    match stateful_set {
        Some(set) => set.owner().await.map(Some).map_err(Error::StatefulSet),
        None => Ok(options.pod.as_ref().map(Pod::owner)),
    }
}

/// Random for each start of a process.
fn incarnation() -> String {
    format!("{:032x}", rand::random::<u128>())
}
