//! An instance that the test itself plays, by the protocol alone and without the library: it keeps a
//! Lease and gives up what it is asked for. It works on nothing, and can be told to fall silent.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::StreamExt;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::core::PartialObjectMeta;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use sharding::core::names::Annotation;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};
use tokio_stream::wrappers::IntervalStream;

use super::arena::{ACCOUNT, Arena, LEASE, LEASE_STEADY};
use super::{Moment, Persona, World, monotonic};

/// How often it looks around: at the pace of the shortest Lease.
const LOOK_EVERY: Duration = Duration::from_millis(400);

/// A Lease that is kept. Dropping it ends the renewals.
pub struct Puppet {
    pub id: String,
    keeping: JoinSet<Result<Moment>>,
}

/// How a puppet plays.
#[derive(Clone, Debug)]
pub struct Role {
    /// D of its Lease.
    pub lease: Duration,
    /// Of its Lease, besides those that every Lease of the ring has.
    pub labels: Value,
    pub manner: Manner,
}

/// What a puppet does about objects that it is to give up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Manner {
    #[default]
    GivesUp,
    /// Keeps them, and says nothing.
    Ignores,
    /// Keeps them, and says by its Lease that it has seen them.
    SeesAndKeeps,
}

/// Where a puppet lives.
#[derive(Clone)]
struct Strings {
    manner: Manner,
    epoch: String,
    seen: String,
    id: String,
    leases: Api<Lease>,
    secrets: Api<Secret>,
    shard: String,
    drain: String,
}

// === impl Role ===

impl Role {
    /// Of somebody whose silence is noticed soon.
    #[must_use]
    pub fn brief() -> Self {
        Self { lease: LEASE, ..Self::default() }
    }
}

impl Default for Role {
    fn default() -> Self {
        Self { lease: LEASE_STEADY, labels: json!({}), manner: Manner::default() }
    }
}

// === impl Puppet ===

impl Puppet {
    /// Creates a Lease in the arena's namespace and keeps it.
    pub async fn join(world: &World, arena: &Arena, id: &str) -> Result<Self> {
        Self::join_as(world, arena, id, &Role::default()).await
    }

    pub async fn join_as(world: &World, arena: &Arena, id: &str, role: &Role) -> Result<Self> {
        let persona = Persona::service_account(&arena.name, ACCOUNT).in_pod(id);
        let client = world.client_as(&persona).await?;
        let lease = new_lease(arena, id, role)?;
        let strings = Strings { manner: role.manner, ..Strings::new(client, arena, id) };
        strings.leases.create(&PostParams::default(), &lease).await.context("create a Lease")?;
        Ok(Self::keep(strings))
    }

    /// Takes up a Lease that was given back, or that it has held before.
    pub async fn rejoin(world: &World, arena: &Arena, id: &str) -> Result<Self> {
        let persona = Persona::service_account(&arena.name, ACCOUNT).in_pod(id);
        let strings = Strings::new(world.client_as(&persona).await?, arena, id);
        // The sharder writes into it too: then it is read again.
        while !strings.take_up().await? {}
        Ok(Self::keep(strings))
    }

    fn keep(strings: Strings) -> Self {
        let id = strings.id.clone();
        let mut keeping = JoinSet::new();
        keeping.spawn(strings.play());
        Self { id, keeping }
    }

    /// Falls silent at once; what it had in flight may still arrive.
    pub fn fall_silent(self) {
        drop(self);
    }

    /// Waits until it reads that its Lease is another's; when that was.
    pub async fn wait_lost(mut self) -> Result<Moment> {
        let ended = self.keeping.join_next().await.context("a puppet is played by a task")?;
        ended.context("a puppet's task panicked")?
    }
}

// === impl Strings ===

impl Strings {
    fn new(client: Client, arena: &Arena, id: &str) -> Self {
        let note = |which| arena.names.annotation(which).unwrap_or_default();
        Self {
            manner: Manner::default(),
            epoch: note(Annotation::DrainEpoch),
            seen: note(Annotation::DrainSeen),
            id: id.to_owned(),
            leases: Api::namespaced(client.clone(), &arena.name),
            secrets: Api::namespaced(client, &arena.name),
            shard: arena.names.shard_label(),
            drain: arena.names.drain_label(),
        }
    }

    /// Takes the Lease as it stands; false if somebody has written into it meanwhile.
    async fn take_up(&self) -> Result<bool> {
        let mut lease = self.leases.get(&self.id).await.context("read the Lease")?;
        let spec = lease.spec.as_mut().context("a Lease has a spec")?;
        spec.holder_identity = Some(self.id.clone());
        spec.lease_duration_seconds = Some(seconds(LEASE_STEADY));
        spec.renew_time = Some(MicroTime(jiff::Timestamp::now()));
        match self.leases.replace(&self.id, &PostParams::default(), &lease).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
            Err(error) => Err(error).context("take the Lease up"),
        }
    }

    /// Until the Lease is lost.
    async fn play(self) -> Result<Moment> {
        let mut ticks = interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut ticks = IntervalStream::new(ticks);
        while ticks.next().await.is_some() {
            if !self.renew().await? {
                return Ok(monotonic());
            }
            if self.manner == Manner::GivesUp {
                self.give_up().await?;
            }
        }
        Ok(monotonic())
    }

    /// Whether it still is ours.
    async fn renew(&self) -> Result<bool> {
        let Some(mut lease) = self.leases.get_opt(&self.id).await? else { return Ok(false) };
        let spec = lease.spec.get_or_insert_default();
        if spec.holder_identity.as_deref() != Some(&self.id) {
            return Ok(false);
        }
        spec.renew_time = Some(MicroTime(jiff::Timestamp::now()));
        let epoch = lease.annotations().get(&self.epoch).cloned();
        if let (Manner::SeesAndKeeps, Some(epoch)) = (self.manner, epoch) {
            lease.annotations_mut().insert(self.seen.clone(), epoch);
        }
        match self.leases.replace(&self.id, &PostParams::default(), &lease).await {
            Ok(_) => Ok(true),
            // The sharder wrote a label or an annotation, or took it: the next look tells.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    async fn give_up(&self) -> Result<()> {
        let asked = format!("{}={},{}", self.shard, self.id, self.drain);
        let asked = self.secrets.list_metadata(&ListParams::default().labels(&asked)).await?;
        for secret in asked {
            self.acknowledge(&secret).await?;
        }
        Ok(())
    }

    async fn acknowledge(&self, secret: &PartialObjectMeta<Secret>) -> Result<()> {
        let patch = json!({"metadata": {
            "resourceVersion": secret.resource_version(),
            "labels": {self.shard.as_str(): null, self.drain.as_str(): null},
        }});
        let (name, params) = (secret.name_any(), PatchParams::default());
        match self.secrets.patch_metadata(&name, &params, &Patch::Merge(patch)).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) => {
                ensure!([404, 409].contains(&status.code), "give up {name}: {status:?}");
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn new_lease(arena: &Arena, id: &str, role: &Role) -> Result<Lease> {
    let now = jiff::Timestamp::now().to_string();
    let mut lease = json!({
        "metadata": {"name": id, "labels": {arena.names.ring_label(): arena.name}},
        "spec": {
            "holderIdentity": id,
            "leaseDurationSeconds": role.lease.as_secs(),
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": 0,
        },
    });
    for (key, value) in role.labels.as_object().into_iter().flatten() {
        lease["metadata"]["labels"][key] = value.clone();
    }
    serde_json::from_value(lease).context("write down a Lease")
}

fn seconds(duration: Duration) -> i32 {
    i32::try_from(duration.as_secs()).expect("Leases last seconds")
}
