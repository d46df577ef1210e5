//! The StatefulSet that an instance is of: the owner of its Lease, and what tells a rolling update from
//! a scale-down.

use k8s_openapi::api::apps::v1 as api;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Api, Client};

use crate::core::names::InstanceId;
use crate::kubernetes::{Error, Request, Unreadable, Verb};

#[derive(Clone)]
pub(super) struct StatefulSet {
    api: Api<api::StatefulSet>,
    name: String,
    about: String,
}

// === impl StatefulSet ===

impl StatefulSet {
    pub(super) fn new(client: Client, namespace: &str, name: String) -> Self {
        let about = format!("StatefulSet {namespace}/{name}");
        Self { api: Api::namespaced(client, namespace), name, about }
    }

    pub(super) async fn owner(&self) -> Result<OwnerReference, Error> {
        let stored = self.read().await?;
        let no_uid = || self.request().unreadable(Unreadable::Missing("uid"));
        Ok(OwnerReference {
            api_version: "apps/v1".to_owned(),
            kind: "StatefulSet".to_owned(),
            name: self.name.clone(),
            uid: stored.metadata.uid.ok_or_else(no_uid)?,
            ..OwnerReference::default()
        })
    }

    /// Whether it is to have a pod of this name.
    pub(super) async fn wants(&self, id: &InstanceId) -> Result<bool, Error> {
        let stored = self.read().await?;
        let is_deleted = stored.metadata.deletion_timestamp.is_some();
        Ok(!is_deleted && wants(&stored.spec.unwrap_or_default(), &self.name, id))
    }

    async fn read(&self) -> Result<api::StatefulSet, Error> {
        self.request().answer(self.api.get(&self.name)).await
    }

    fn request(&self) -> Request<'_> {
        Request::read(Verb::Read, &self.about)
    }
}

/// Names of pods end with their ordinal. A name without one tells nothing.
fn wants(spec: &api::StatefulSetSpec, set: &str, id: &InstanceId) -> bool {
    let ordinal = id.as_str().strip_prefix(set).and_then(|rest| rest.strip_prefix('-'));
    let Some(ordinal) = ordinal.and_then(|text| text.parse::<i64>().ok()) else { return true };
    let first = spec.ordinals.as_ref().and_then(|ordinals| ordinals.start).unwrap_or(0);
    let first = i64::from(first);
    let count = i64::from(spec.replicas.unwrap_or(1));
    (first..first + count).contains(&ordinal)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::StatefulSetOrdinals;

    use super::*;

    fn is_wanted(replicas: Option<i32>, start: Option<i32>, id: &str) -> bool {
        let ordinals = Some(StatefulSetOrdinals { start });
        let spec = api::StatefulSetSpec { replicas, ordinals, ..api::StatefulSetSpec::default() };
        wants(&spec, "sites", &id.parse().unwrap())
    }

    #[test]
    fn pods_beyond_the_number_of_replicas_are_not_wanted() {
        assert!(is_wanted(Some(3), None, "sites-2"));
        assert!(!is_wanted(Some(3), None, "sites-3"));
        assert!(!is_wanted(Some(0), None, "sites-0"));
        assert!(is_wanted(None, None, "sites-0") && !is_wanted(None, None, "sites-1"));
    }

    #[test]
    fn ordinals_may_begin_elsewhere() {
        assert!(is_wanted(Some(2), Some(5), "sites-6"));
        assert!(!is_wanted(Some(2), Some(5), "sites-7") && !is_wanted(Some(2), Some(5), "sites-0"));
    }

    #[test]
    fn a_name_of_another_make_is_wanted() {
        assert!(is_wanted(Some(0), None, "other-3") && is_wanted(Some(0), None, "sites-x"));
    }
}
