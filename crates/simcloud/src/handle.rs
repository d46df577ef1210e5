//! One cloud and its clock, shared by who calls it and by its kubelets. Within the process it is a
//! provider by itself, without a wire.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::Arc;

use autoscaler::provider::{
    Error, GroupOptions, ListedGroup, Method, NodeRef, Provider, Template as ProviderTemplate,
    TemplateTaint,
};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use registry::{GroupId, Instance};

use crate::core::{Cloud, Refusal, Template};
use crate::scenario::{self, Code};

/// Tells the time.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// A cloud. Clones are the same cloud.
#[derive(Clone)]
pub struct Handle {
    cloud: Arc<Mutex<Cloud>>,
    clock: Clock,
}

// === impl Handle ===

impl Handle {
    #[must_use]
    pub fn new(cloud: Cloud, clock: Clock) -> Self {
        Self { cloud: Arc::new(Mutex::new(cloud)), clock }
    }

    /// Looks at the cloud as it is now, or calls it.
    pub fn with<T>(&self, call: impl FnOnce(&mut Cloud, Timestamp) -> T) -> T {
        let mut cloud = self.cloud.lock();
        // The clock is read under the lock, so that no call comes before one that saw a later time.
        let now = (self.clock)();
        cloud.step(now);
        call(&mut cloud, now)
    }

    fn call<T>(
        &self,
        method: Method,
        call: impl FnOnce(&mut Cloud, Timestamp) -> Result<T, Refusal>,
    ) -> Result<T, Error> {
        self.with(call).map_err(|refusal| error(method, refusal))
    }
}

/// What a client over the wire would make of it.
fn error(method: Method, refusal: Refusal) -> Error {
    match refusal {
        Refusal::Unimplemented => Error::Unsupported { method },
        Refusal::NoAnswer | Refusal::Failed { code: Code::Unavailable, .. } => {
            Error::Unknown { method, source: Box::new(refusal) }
        }
        Refusal::Failed { code, message } => {
            Error::rejected(method, format_args!("{code:?}"), &message)
        }
    }
}

impl Provider for Handle {
    async fn refresh(&self) -> Result<(), Error> {
        self.call(Method::Refresh, Cloud::refresh)
    }

    async fn groups(&self) -> Result<Vec<ListedGroup>, Error> {
        self.call(Method::NodeGroups, Cloud::groups)
    }

    async fn group_of(&self, node: &NodeRef) -> Result<Option<GroupId>, Error> {
        self.call(Method::NodeGroupForNode, |cloud, now| cloud.group_of(now, node))
    }

    async fn target(&self, group: &GroupId) -> Result<i64, Error> {
        let target = |cloud: &mut Cloud, now| cloud.target(now, group);
        self.call(Method::NodeGroupTargetSize, target).map(i64::from)
    }

    async fn instances(&self, group: &GroupId) -> Result<Vec<Instance>, Error> {
        self.call(Method::NodeGroupNodes, |cloud, now| cloud.instances(now, group))
    }

    async fn template(&self, group: &GroupId) -> Result<Option<ProviderTemplate>, Error> {
        let template = |cloud: &mut Cloud, now| cloud.template(now, group);
        let template = self.call(Method::NodeGroupTemplateNodeInfo, template)?;
        Ok(template.map(|template| template.into_provider()))
    }

    async fn options(
        &self,
        group: &GroupId,
        defaults: &GroupOptions,
    ) -> Result<GroupOptions, Error> {
        let options = |cloud: &mut Cloud, now| cloud.options(now, group);
        let own = self.call(Method::NodeGroupGetOptions, options)?;
        Ok(own.over(defaults))
    }

    async fn gpu_label(&self) -> Result<String, Error> {
        self.call(Method::GpuLabel, Cloud::gpu_label)
    }

    async fn gpu_types(&self) -> Result<BTreeSet<String>, Error> {
        self.call(Method::GetAvailableGpuTypes, Cloud::gpu_types)
    }

    async fn increase(&self, group: &GroupId, by: NonZeroU32) -> Result<(), Error> {
        self.call(Method::NodeGroupIncreaseSize, |cloud, now| cloud.increase(now, group, by))
    }

    async fn decrease(&self, group: &GroupId, by: NonZeroU32) -> Result<(), Error> {
        self.call(Method::NodeGroupDecreaseTargetSize, |cloud, now| cloud.decrease(now, group, by))
    }

    async fn delete(&self, group: &GroupId, nodes: &[NodeRef]) -> Result<(), Error> {
        self.call(Method::NodeGroupDeleteNodes, |cloud, now| cloud.delete(now, group, nodes))
    }

    async fn cleanup(&self) -> Result<(), Error> {
        self.call(Method::Cleanup, Cloud::cleanup)
    }
}

// === impl Template ===

impl Template {
    fn into_provider(self) -> ProviderTemplate {
        let labels = self.labels();
        let taint = |taint: scenario::Taint| {
            let scenario::Taint { key, value, effect } = taint;
            TemplateTaint { key, value, effect }
        };
        ProviderTemplate {
            labels,
            taints: self.group.taints.into_iter().map(taint).collect(),
            allocatable: self.group.capacity.clone(),
            capacity: self.group.capacity,
            ..ProviderTemplate::default()
        }
    }
}

// === impl scenario::GroupOptions ===

impl scenario::GroupOptions {
    /// The defaults, but for what the group sets.
    fn over(&self, defaults: &GroupOptions) -> GroupOptions {
        let span = |own: Option<std::time::Duration>, default| {
            let own = own.map(|own| SignedDuration::try_from(own).unwrap_or(SignedDuration::MAX));
            own.or(default)
        };
        let times = registry::Options {
            unneeded: span(self.unneeded, defaults.times.unneeded),
            unready: span(self.unready, defaults.times.unready),
            provision: span(self.provision, defaults.times.provision),
            startup: span(self.startup, defaults.times.startup),
        };
        let share = |own: Option<f64>, default| own.unwrap_or(default);
        GroupOptions {
            times,
            utilization_threshold: share(
                self.utilization_threshold,
                defaults.utilization_threshold,
            ),
            gpu_utilization_threshold: share(
                self.gpu_utilization_threshold,
                defaults.gpu_utilization_threshold,
            ),
            is_zero_or_max: self.zero_or_max.unwrap_or(defaults.is_zero_or_max),
            ignores_daemon_sets: self.ignore_daemon_sets.unwrap_or(defaults.ignores_daemon_sets),
            may_fill_in_parts: defaults.may_fill_in_parts,
        }
    }
}
