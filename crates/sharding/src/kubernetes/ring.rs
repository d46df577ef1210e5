//! The Ring as it is stored: what users ask for, and what the sharder says about it.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, Time};
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams, WatchParams};
use kube::core::ClusterResourceScope;
use kube::{Api, Client, Resource};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::changes::changes;
use super::{Changes, Error, PAGE, Request, Unreadable, Verb, found};
use crate::core::names::{InstanceId, RingName};
use crate::core::object::Version;
use crate::core::partition::table::Kept;
use crate::core::spec::{self, Spec};

/// Keeps a deleted Ring until its objects are free.
pub const FINALIZER: &str = "windlass.dev/sharder";

const GROUP: &str = "windlass.dev";
const VERSION: &str = "v1alpha1";
const API_VERSION: &str = "windlass.dev/v1alpha1";
const KIND: &str = "Ring";
const PLURAL: &str = "rings";

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ring {
    api_version: String,
    kind: String,
    pub metadata: ObjectMeta,
    pub spec: Spec,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<RingStatus>,
}

/// What the sharder says about a ring.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RingStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How many instances the ring has, in whatever state.
    pub instances: usize,
    /// How many of them are ready.
    pub ready: usize,
    pub members: Vec<MemberStatus>,
    /// Who has which slot. Written by itself, guarded, before any label follows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<Kept>,
    /// Objects on their way.
    pub moving: usize,
    /// The fullest instance compared with the mean, as last counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imbalance: Option<f64>,
    /// Kinds whose objects may have the ring's labels: what the ring was given last, and what has
    /// left it since and is not stripped yet. Written before the first label.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<spec::Resource>,
    pub conditions: Vec<Condition>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemberStatus {
    pub id: InstanceId,
    /// Empty where its Lease is not there.
    #[serde(default)]
    pub namespace: String,
    pub state: String,
    pub weight: u32,
    #[serde(default)]
    pub slots: usize,
    #[serde(default)]
    pub objects: u64,
    /// Since when it has been in this state, as far as the sharder saw.
    pub since: Time,
}

/// All Rings of a cluster.
#[derive(Clone)]
pub struct Rings {
    api: Api<DynamicObject>,
}

// === impl Ring ===

impl Ring {
    #[must_use]
    pub fn new(name: &str, spec: Spec) -> Self {
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        let (api_version, kind) = (API_VERSION.to_owned(), KIND.to_owned());
        Self { api_version, kind, metadata, spec, status: None }
    }

    /// What the server has; not every Ring is one that this version understands.
    pub fn read(stored: DynamicObject) -> Result<Self, Unreadable> {
        let metadata = stored.metadata;
        let part = |name: &str| stored.data.get(name).filter(|part| !part.is_null()).cloned();
        let spec = part("spec").ok_or(Unreadable::Missing("spec"))?;
        let unreadable = |error: serde_json::Error| Unreadable::Spec(error.to_string());
        let spec: Spec = serde_json::from_value(spec).map_err(unreadable)?;
        let status = part("status").map(serde_json::from_value).transpose();
        let (api_version, kind) = (API_VERSION.to_owned(), KIND.to_owned());
        Ok(Self { api_version, kind, metadata, spec, status: status.map_err(unreadable)? })
    }

    pub fn name(&self) -> Result<RingName, Unreadable> {
        let name = self.metadata.name.clone().ok_or(Unreadable::Missing("name"))?;
        RingName::try_from(name).map_err(Unreadable::Ring)
    }

    #[must_use]
    pub fn version(&self) -> Version {
        Version(self.metadata.resource_version.clone().unwrap_or_default())
    }

    #[must_use]
    pub fn is_deleted(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    #[must_use]
    pub fn has_finalizer(&self) -> bool {
        self.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == FINALIZER)
    }
}

impl Resource for Ring {
    type DynamicType = ();
    type Scope = ClusterResourceScope;

    fn kind(_: &()) -> Cow<'_, str> {
        KIND.into()
    }

    fn group(_: &()) -> Cow<'_, str> {
        GROUP.into()
    }

    fn version(_: &()) -> Cow<'_, str> {
        VERSION.into()
    }

    fn plural(_: &()) -> Cow<'_, str> {
        PLURAL.into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

// === impl Rings ===

impl Rings {
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { api: Api::all_with(client, &ApiResource::erase::<Ring>(&())) }
    }

    pub async fn get(&self, name: &str) -> Result<Option<Ring>, Error> {
        let about = about(name);
        let request = Request::read(Verb::Read, &about);
        let stored = found(request.answer(self.api.get(name)).await)?;
        stored.map(Ring::read).transpose().map_err(|it| request.unreadable(it))
    }

    /// All Rings as they are stored, and the moment of the list.
    pub async fn list(&self) -> Result<(Vec<DynamicObject>, String), Error> {
        let (mut all, mut token) = (Vec::new(), None);
        loop {
            let mut params = ListParams::default().limit(PAGE);
            params.continue_token = token;
            let page = Request::read(Verb::List, "Rings").answer(self.api.list(&params)).await?;
            all.extend(page.items);
            token = page.metadata.continue_.filter(|token| !token.is_empty());
            if token.is_none() {
                return Ok((all, page.metadata.resource_version.unwrap_or_default()));
            }
        }
    }

    /// All changes after `rv`.
    pub async fn watch(&self, rv: &str) -> Result<Changes<DynamicObject>, Error> {
        let params = WatchParams::default();
        let watched = self.api.watch(&params, rv);
        let events = Request::read(Verb::Watch, "Rings").answer(watched).await?;
        Ok(changes("Rings".to_owned(), events, |stored| stored))
    }

    /// Keeps the table, if the Ring still has this version; the Ring's new version.
    pub async fn write_table(
        &self,
        name: &str,
        kept: &Kept,
        version: &Version,
    ) -> Result<Version, Error> {
        let guard = json!({"resourceVersion": version.0});
        let patch = json!({"metadata": guard, "status": {"table": kept}});
        self.patch_status(name, patch).await
    }

    /// Writes the rest of the status, whatever version the Ring has: only the leader writes it, and
    /// the next write mends what two of them left.
    pub async fn write_status(&self, name: &str, status: &RingStatus) -> Result<(), Error> {
        let mut status = json!(status);
        if let Some(fields) = status.as_object_mut() {
            fields.remove("table");
            fields.remove("resources");
            // What is not said is removed, or a merge would leave it standing.
            for field in ["imbalance", "observedGeneration"] {
                fields.entry(field).or_insert(Value::Null);
            }
        }
        self.patch_status(name, json!({ "status": status })).await.map(|_| ())
    }

    /// Writes which kinds may have labels, if the Ring still has this version.
    pub async fn write_resources(
        &self,
        name: &str,
        resources: &[spec::Resource],
        version: &Version,
    ) -> Result<Version, Error> {
        let guard = json!({"resourceVersion": version.0});
        self.patch_status(name, json!({"metadata": guard, "status": {"resources": resources}}))
            .await
    }

    /// Replaces the finalizers, if the Ring still has this version.
    pub async fn write_finalizers(
        &self,
        ring: &Ring,
        finalizers: &[String],
    ) -> Result<Ring, Error> {
        let name = ring.metadata.name.as_deref().unwrap_or_default();
        let about = about(name);
        let request = Request::read(Verb::Patch, &about);
        let metadata = json!({"resourceVersion": ring.version().0, "finalizers": finalizers});
        let (params, patch) = (PatchParams::default(), Patch::Merge(json!({"metadata": metadata})));
        let stored = request.answer(self.api.patch(name, &params, &patch)).await?;
        Ring::read(stored).map_err(|it| request.unreadable(it))
    }

    async fn patch_status(&self, name: &str, patch: Value) -> Result<Version, Error> {
        let about = about(name);
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        let patched = self.api.patch_status(name, &params, &patch);
        let stored = Request::read(Verb::Patch, &about).answer(patched).await?;
        Ok(Version(stored.metadata.resource_version.unwrap_or_default()))
    }
}

fn about(name: &str) -> String {
    format!("Ring {name}")
}
