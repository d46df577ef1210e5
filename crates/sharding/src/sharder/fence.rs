//! The admission policy of a ring: installed by us where the ring says so, looked at where somebody
//! else does, and trusted when it has been the same before our eyes for long enough.

#[cfg(test)]
mod tests;

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::ObjectMeta;
use kube::{Api, Client, Resource};
use serde_json::Value;
use std::time::Duration;
use tokio::time::Instant;

use super::plan::in_words;
use crate::core::fence::{ACTIVE_AFTER, Options, covers, objects};
use crate::core::names::Names;
use crate::core::spec::{self, Spec};
use crate::kubernetes::{Error, Meaning, Request, Verb, found};
use crate::manifests::{NAME, user};

/// How a ring's fence stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fencing {
    /// The ring wants none.
    Off,
    /// It is there, but some API server may not have heard of it yet.
    Settling,
    Active,
    /// Somebody else is to install it, and has not.
    Missing,
    /// Somebody else has installed one that lets pass what ours would not.
    Outdated,
    /// We were to install it, and cannot.
    Failed(String),
}

pub(super) struct Fence {
    client: Client,
    name: String,
    /// As whom the API server knows us, once it was asked.
    users: Option<Vec<String>>,
    /// What policy and binding looked like, and since when.
    seen: Option<(Looks, Instant)>,
    /// Whether the ring wants none and what an earlier spec asked for has been taken away.
    is_away: bool,
}

/// What was found where somebody else is to install it.
enum Found {
    Nothing,
    Another,
    Fence(Looks),
}

/// What changes when somebody changes a policy or its binding.
type Looks = [(Option<String>, Option<i64>); 2];

// === impl Fence ===

impl Fence {
    pub(super) fn new(client: Client, names: &Names) -> Self {
        let name = format!("windlass-fence-{}", names.ring());
        Self { client, name, users: None, seen: None, is_away: false }
    }

    /// Sees to the fence as the ring wants it. Nobody may have looked after it meanwhile, so this is
    /// to be called again and again.
    pub(super) async fn tend(&mut self, (names, spec, home): (&Names, &Spec, &str)) -> Fencing {
        let looked = match spec.fence {
            spec::Fence::Off => self.leave_off().await.map(|()| Found::Nothing),
            spec::Fence::Managed => self.install((names, spec, home)).await.map(Found::Fence),
            spec::Fence::External => self.look((names, spec)).await,
        };
        match looked {
            Ok(Found::Fence(looks)) => self.on_seen(looks, Instant::now()),
            Ok(Found::Another) => self.forget(Fencing::Outdated),
            Ok(Found::Nothing) if spec.fence == spec::Fence::Off => self.forget(Fencing::Off),
            Ok(Found::Nothing) => self.forget(Fencing::Missing),
            Err(error) => self.forget(Fencing::Failed(in_words(&error))),
        }
    }

    /// How long until what is settling is trusted.
    pub(super) fn settles_in(&self) -> Option<Duration> {
        let (_, since) = self.seen.as_ref()?;
        Some(ACTIVE_AFTER.saturating_sub(since.elapsed())).filter(|left| !left.is_zero())
    }

    /// The ring ends: its fence goes with it, unless it is somebody else's.
    pub(super) async fn remove(&mut self, spec: &Spec) -> Result<(), Error> {
        self.seen = None;
        match spec.fence {
            spec::Fence::Managed => self.take_away().await,
            spec::Fence::Off => self.leave_off().await,
            spec::Fence::External => Ok(()),
        }
    }

    /// The ring wants no fence: one that was installed while it did must not outlive that. Whoever runs
    /// rings without fences need not give us rights to them, and then there is none of ours.
    async fn leave_off(&mut self) -> Result<(), Error> {
        if self.is_away {
            return Ok(());
        }
        match self.take_away().await {
            Err(error) if error.meaning() != Meaning::Forbidden => return Err(error),
            _ => self.is_away = true,
        }
        Ok(())
    }

    /// The binding first: a policy without one refuses nothing.
    async fn take_away(&self) -> Result<(), Error> {
        self.delete_own(&self.bindings()).await?;
        self.delete_own(&self.policies()).await
    }

    /// Under this name there may also be what an administrator installed while the ring said so.
    async fn delete_own<K>(&self, api: &Api<K>) -> Result<(), Error>
    where
        K: Clone + std::fmt::Debug + serde::de::DeserializeOwned + Resource,
    {
        let read = Request::read(Verb::Read, &self.name);
        let there = found(read.answer(api.get(&self.name)).await)?;
        let Some(own) = there.filter(|object| is_own(object.meta())) else { return Ok(()) };
        let uid = own.meta().uid.clone();
        let params = DeleteParams {
            preconditions: Some(Preconditions { uid, resource_version: None }),
            ..DeleteParams::default()
        };
        let request = Request::read(Verb::Delete, &self.name);
        found(request.answer(api.delete(&self.name, &params)).await)?;
        Ok(())
    }

    fn forget(&mut self, fencing: Fencing) -> Fencing {
        self.seen = None;
        fencing
    }

    fn on_seen(&mut self, looks: Looks, now: Instant) -> Fencing {
        match &self.seen {
            Some((seen, since)) if *seen == looks => {
                let is_old = now.duration_since(*since) >= ACTIVE_AFTER;
                if is_old { Fencing::Active } else { Fencing::Settling }
            }
            _ => {
                self.seen = Some((looks, now));
                Fencing::Settling
            }
        }
    }

    /// Applying what is there already changes nothing, not even its generation.
    async fn install(
        &mut self,
        (names, spec, home): (&Names, &Spec, &str),
    ) -> Result<Looks, Error> {
        self.is_away = false;
        let sharders = self.users(home).await?;
        let [policy, binding] = objects(&Options { names, spec, sharders: &sharders });
        let policy = self.apply(&self.policies(), &policy).await?;
        let binding = self.apply(&self.bindings(), &binding).await?;
        Ok([looks(policy.meta()), looks(binding.meta())])
    }

    async fn apply<K>(&self, api: &Api<K>, wanted: &Value) -> Result<K, Error>
    where
        K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
    {
        let params = PatchParams::apply(NAME).force();
        let request = Request::read(Verb::Patch, &self.name);
        request.answer(api.patch(&self.name, &params, &Patch::Apply(wanted))).await
    }

    /// One that was made for an earlier spec, or is only to warn, refuses nobody.
    async fn look(&self, (names, spec): (&Names, &Spec)) -> Result<Found, Error> {
        let request = Request::read(Verb::Read, &self.name);
        let policy = found(request.answer(self.policies().get(&self.name)).await)?;
        let binding = found(request.answer(self.bindings().get(&self.name)).await)?;
        let Some((policy, binding)) = policy.zip(binding) else { return Ok(Found::Nothing) };
        let wanted = objects(&Options { names, spec, sharders: &[] });
        let found = [serde_json::to_value(&policy), serde_json::to_value(&binding)];
        let found = found.map(|it| it.expect("what was read can be written"));
        let is_ours = wanted.iter().zip(&found).all(|(wanted, found)| covers(wanted, found));
        if !is_ours {
            return Ok(Found::Another);
        }
        Ok(Found::Fence([looks(policy.meta()), looks(binding.meta())]))
    }

    /// The account that our manifests give to sharders, and whoever we are: somebody may run us
    /// outside the cluster.
    async fn users(&mut self, home: &str) -> Result<Vec<String>, Error> {
        if let Some(users) = &self.users {
            return Ok(users.clone());
        }
        let reviews: Api<SelfSubjectReview> = Api::all(self.client.clone());
        let params = PostParams::default();
        let question = SelfSubjectReview::default();
        let asked = reviews.create(&params, &question);
        let review = Request::read(Verb::Create, "SelfSubjectReview").answer(asked).await?;
        let own = review.status.and_then(|status| status.user_info?.username);
        let mut users = vec![user(home)];
        users.extend(own.filter(|own| !users.contains(own)));
        Ok(self.users.insert(users).clone())
    }

    fn policies(&self) -> Api<ValidatingAdmissionPolicy> {
        Api::all(self.client.clone())
    }

    fn bindings(&self) -> Api<ValidatingAdmissionPolicyBinding> {
        Api::all(self.client.clone())
    }
}

/// Whether we have ever applied it.
fn is_own(metadata: &ObjectMeta) -> bool {
    let is_ours = |entry: &ManagedFieldsEntry| entry.manager.as_deref() == Some(NAME);
    metadata.managed_fields.iter().flatten().any(is_ours)
}

fn looks(metadata: &ObjectMeta) -> (Option<String>, Option<i64>) {
    (metadata.uid.clone(), metadata.generation)
}
