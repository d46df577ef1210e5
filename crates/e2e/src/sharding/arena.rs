//! One ring with a namespace of its own: Secrets that are spread, the ConfigMaps they own, and the
//! instances' account. Nothing of it meets another ring.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use sharding::core::history::{History, Terms};
use sharding::core::names::Names;
use sharding::core::spec::{Fence, Spec};
use sharding::kubernetes::{Ring, Rings};
use sharding::manifests;

use super::World;
use super::evidence::{Evidence, Moment, Testimony};
use super::instance::{self, Instance};
use super::{epoch, monotonic};
use crate::wait::{Level, wait_for};

/// D of those whose silence is timed. Only puppets keep a Lease so short: they never give it up themselves.
pub const LEASE: Duration = Duration::from_secs(2);

/// D of processes that fall silent, or have to be back in time: a busy machine takes a second for an answer.
pub const LEASE_PATIENT: Duration = Duration::from_secs(6);

/// D of everybody else, as it is by default: no machine is so busy that it keeps them from renewing.
pub const LEASE_STEADY: Duration = Duration::from_secs(15);

/// How long anything may take that is not timed by Leases.
pub const SETTLE_WAIT: Duration = Duration::from_secs(60);

/// How long an object may be nobody's while an instance is ready: until another sharder leads (15 s), and
/// until whoever is to have it has been silent for twice its D.
const UNASSIGNED_MAX: Duration = Duration::from_secs(45);

/// How long a sharder may seem to think that an instance is ready which is not: while its watch is away,
/// as over a restart of the API server, or while ours is, which tells when an object got its label.
const SIGHT_MAX: Duration = Duration::from_secs(45);

/// The instances' account.
pub const ACCOUNT: &str = "checksums";

/// Requests of the administrator in flight.
const WIDTH: usize = 16;

/// A ring, and what happened in it.
pub struct Arena {
    /// Of the ring and of the namespace.
    pub name: String,
    pub names: Names,
    pub spec: Spec,
    pub client: Client,
    /// How much the clocks of the ring's processes differ from ours.
    pub skew: Duration,
    /// What instances wrote about their work; one file for each process.
    histories: Vec<PathBuf>,
    stopped: Vec<(Moment, PathBuf)>,
}

/// Whose an object is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    pub shard: Option<String>,
    pub is_draining: bool,
}

// === impl Arena ===

impl Arena {
    /// `changes` are merged into the usual spec.
    pub async fn open(world: &World, name: &str, changes: &Value) -> Result<Self> {
        let mut spec = usual_spec(name);
        merge(&mut spec, changes);
        let spec: Spec = serde_json::from_value(spec).context("read the spec")?;
        let names = spec.names(name.parse()?);
        let kubectl = world.server.kubectl();
        kubectl.create(&surroundings(name)).await?;
        let rights = manifests::ring_objects(names.ring(), &spec, manifests::HOME);
        kubectl.create(&rights).await.context("give the ring its rights")?;
        world.gather_rights().await?;
        let ring = serde_json::to_value(Ring::new(name, spec.clone()))?;
        kubectl.create(&[ring]).await.context("create the ring")?;
        let client = world.client.clone();
        let name = name.to_owned();
        let (histories, stopped) = (Vec::new(), Vec::new());
        Ok(Self { name, names, spec, client, skew: Duration::ZERO, histories, stopped })
    }

    #[must_use]
    pub fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &self.name)
    }

    #[must_use]
    pub fn config_maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), &self.name)
    }

    #[must_use]
    pub fn leases(&self) -> Api<Lease> {
        Api::namespaced(self.client.clone(), &self.name)
    }

    pub async fn ring(&self) -> Result<Ring> {
        let ring = Rings::new(self.client.clone()).get(&self.name).await?;
        ring.with_context(|| format!("there is no ring {}", self.name))
    }

    /// Creates that many Secrets, named after the prefix.
    pub async fn populate(&self, prefix: &str, count: usize) -> Result<()> {
        let create = async |number: usize| {
            let secret = json!({
                "metadata": {"name": format!("{prefix}-{number:04}")},
                "stringData": {"key": format!("{number}")},
            });
            let secret: Secret = serde_json::from_value(secret)?;
            self.secrets().create(&PostParams::default(), &secret).await?;
            anyhow::Ok(())
        };
        stream::iter(0..count).map(create).buffer_unordered(WIDTH).try_collect().await
    }

    /// Changes every Secret.
    pub async fn touch(&self) -> Result<()> {
        let value = format!("{:?}", monotonic());
        let patch = Patch::Merge(json!({"stringData": {"key": value}}));
        let (secrets, params) = (self.secrets(), PatchParams::default());
        let change = async |name: String| secrets.patch(&name, &params, &patch).await.map(drop);
        let names = self.standings().await?.into_keys();
        let changes = stream::iter(names).map(change).buffer_unordered(WIDTH);
        changes.try_collect().await.context("change the Secrets")
    }

    /// Whose each Secret is.
    pub async fn standings(&self) -> Result<BTreeMap<String, Standing>> {
        let secrets = self.secrets().list_metadata(&ListParams::default()).await?;
        let read = |labels: &BTreeMap<String, String>| Standing {
            shard: labels.get(&self.names.shard_label()).cloned(),
            is_draining: labels.contains_key(&self.names.drain_label()),
        };
        Ok(secrets.iter().map(|secret| (secret.name_any(), read(secret.labels()))).collect())
    }

    /// Waits until every Secret is one of theirs and stays there, and each of them has some.
    pub async fn wait_spread(&self, ids: &[&str]) -> Result<BTreeMap<String, String>> {
        let wanted: BTreeSet<&str> = ids.iter().copied().collect();
        wait_for(&format!("the objects to be those of {ids:?}"), SETTLE_WAIT, async || {
            let standings = self.standings().await?;
            let is_settled = standings.values().all(|standing| !standing.is_draining);
            let owners = standings.values().map(|it| it.shard.as_deref().unwrap_or("nobody"));
            let owners: BTreeSet<&str> = owners.collect();
            if is_settled && owners == wanted {
                let owned = standings.into_iter();
                let owned = owned.map(|(name, it)| (name, it.shard.unwrap_or_default()));
                return Ok(Level::Reached(owned.collect()));
            }
            Ok(Level::Below(format!("{owners:?}, settled: {is_settled}")))
        })
        .await
    }

    /// Waits until each Secret has its ConfigMap, and both are the same instance's.
    pub async fn wait_worked(&self) -> Result<()> {
        wait_for("each Secret to have its ConfigMap", SETTLE_WAIT, async || {
            let label = self.names.shard_label();
            let maps = self.config_maps().list_metadata(&ListParams::default()).await?;
            let shard_of = |map: &kube::core::PartialObjectMeta<ConfigMap>| {
                (map.name_any(), map.labels().get(&label).cloned())
            };
            let maps: BTreeMap<String, Option<String>> = maps.iter().map(shard_of).collect();
            let standings = self.standings().await?;
            let lacking = standings.iter().filter(|(name, standing)| {
                maps.get(&instance::child_of(name)) != Some(&standing.shard)
            });
            let lacking: Vec<&String> = lacking.map(|(name, _)| name).collect();
            Ok(if lacking.is_empty() {
                Level::Reached(())
            } else {
                Level::Below(format!("{} lack it, such as {}", lacking.len(), lacking[0]))
            })
        })
        .await
    }

    /// Waits until the sharder says this about an instance.
    pub async fn wait_state(&self, id: &str, state: &str, bound: Duration) -> Result<()> {
        wait_for(&format!("{id} to be {state}"), bound, async || {
            let lease = self.leases().get_opt(id).await?;
            let label = self.names.state_label();
            let said = lease.and_then(|lease| lease.labels().get(&label).cloned());
            Ok(if said.as_deref() == Some(state) {
                Level::Reached(())
            } else {
                Level::Below(format!("{said:?}"))
            })
        })
        .await
    }

    /// Waits until the ring has a condition with this reason, and returns its message.
    pub async fn wait_reason(&self, kind: &str, reason: &str) -> Result<String> {
        wait_for(&format!("{kind} to be for {reason}"), SETTLE_WAIT, async || {
            let conditions = self.ring().await?.status.unwrap_or_default().conditions;
            let found = conditions.iter().find(|it| it.type_ == kind && it.reason == reason);
            Ok(match found {
                Some(condition) => Level::Reached(condition.message.clone()),
                None => Level::Below(format!("{conditions:?}")),
            })
        })
        .await
    }

    /// An instance was started; what it does counts as evidence.
    pub(super) fn on_started(&mut self, instance: &Instance) {
        self.histories.push(instance.history().to_owned());
    }

    /// An instance was killed or stopped from outside, and nothing of it runs: what it was doing hangs.
    pub(super) fn on_stopped(&mut self, history: &Path) {
        self.stopped.push((monotonic(), history.to_owned()));
    }

    /// Judges everything that happened so far.
    pub async fn judge(&self, world: &World) -> Result<History> {
        let testimony = self.testimony(world).await?;
        let is_fenced = self.spec.fence != Fence::Off;
        let (unassigned_max, sight_max) = (UNASSIGNED_MAX, SIGHT_MAX);
        let terms = Terms { is_fenced, skew: self.skew, unassigned_max, sight_max };
        let history = testimony.judge(terms)?;
        Ok(history)
    }

    pub async fn testimony(&self, world: &World) -> Result<Testimony> {
        let mut worked = Vec::new();
        for history in &self.histories {
            worked.extend(instance::worked(history)?);
        }
        let mut stopped = Vec::new();
        for (at, history) in &self.stopped {
            let workers = instance::worked(history)?.into_iter().map(|work| work.worker);
            let workers: BTreeSet<_> = workers.collect();
            stopped.extend(workers.into_iter().map(|worker| (*at, worker)));
        }
        let written = instance::written(&world.audit, &self.name)?;
        let seen = world.seen().await?;
        let (epoch, has_skew) = (epoch(), !self.skew.is_zero());
        let evidence = Evidence { seen, worked, written, stopped, epoch, has_skew };
        Ok(evidence.about(&self.names, &self.name))
    }

    /// Deletes the ring and waits until the sharder has let it go.
    pub async fn close(&self) -> Result<()> {
        let rings: Api<kube::api::DynamicObject> =
            Api::all_with(self.client.clone(), &kube::api::ApiResource::erase::<Ring>(&()));
        rings.delete(&self.name, &DeleteParams::default()).await.context("delete the ring")?;
        wait_for(&format!("ring {} to be gone", self.name), SETTLE_WAIT, async || {
            Ok(match rings.get_opt(&self.name).await? {
                None => Level::Reached(()),
                Some(ring) => Level::Below(format!("{:?}", ring.metadata.finalizers)),
            })
        })
        .await
    }
}

/// Secrets and the ConfigMaps they own, of the arena's namespace alone. Times are short, so that
/// what waits for them is not long.
fn usual_spec(name: &str) -> Value {
    json!({
        "resources": [{"resource": "secrets", "controlled": [{"resource": "configmaps"}]}],
        "namespaceSelector": {"matchLabels": {"arena": name}},
        "instances": {"serviceAccounts": [format!("{name}/{ACCOUNT}")]},
        "handover": {"drainTimeoutSeconds": 6, "graceSeconds": 2},
    })
}

/// The namespace and the account.
fn surroundings(name: &str) -> Vec<Value> {
    let group = "rbac.authorization.k8s.io";
    let account = json!({"kind": "ServiceAccount", "name": ACCOUNT, "namespace": name});
    vec![
        json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "labels": {"arena": name}},
        }),
        json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": ACCOUNT, "namespace": name},
        }),
        // What the controller does with its kinds besides being an instance.
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": format!("checksums-{name}")},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "system:aggregate-to-edit"},
            "subjects": [account],
        }),
    ]
}

/// As a merge patch would.
fn merge(value: &mut Value, changes: &Value) {
    match (value, changes) {
        (Value::Object(fields), Value::Object(changes)) => {
            for (name, change) in changes {
                merge(fields.entry(name).or_insert(Value::Null), change);
            }
        }
        (value, change) => *value = change.clone(),
    }
}
