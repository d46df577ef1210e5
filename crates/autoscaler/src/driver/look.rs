//! Reading Kubernetes and the provider into what the core goes by.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use registry::{Facts, Fault, Group, GroupId, Membership};

use super::Driver;
use super::term::Sight;
use crate::cluster::{self, About, Cluster, Event, Snapshot};
use crate::core::template::node_of;
use crate::core::{Config, GroupSettings};
use crate::options::Mode;
use crate::provider::{Error, GroupOptions, Provider};
use crate::record::Seen;
use crate::{facts, pending, world};

// === impl Driver ===

impl<P: Provider, C: Cluster> Driver<P, C> {
    /// What is there now. What the provider does not tell is a fault of the group it is about.
    pub(super) async fn look(&mut self, now: Timestamp) -> Result<Sight, cluster::Error> {
        let plans = &self.options.plans;
        let defaults = GroupOptions {
            utilization_threshold: plans.scale_down.utilization_threshold,
            ignores_daemon_sets: plans.scale_down.ignores_daemon_sets,
            ..GroupOptions::with_times(&self.options.registry.times)
        };
        let groups = self.reader.groups(&defaults).await;
        // After the provider: an instance that is listed and has just registered is not taken for one
        // that has not.
        let snapshot = self.cluster.snapshot()?;
        let settings = self.settings(&groups, &snapshot).await;
        let refs: Vec<_> = snapshot.nodes.iter().filter_map(|node| facts::node_ref(node)).collect();
        let memberships = self.reader.memberships(&refs, now).await;
        let gpu_label = self.gpu_label().await;
        let nodes = snapshot.nodes.iter().filter_map(|node| {
            let name = node.metadata.name.as_deref()?;
            let membership = memberships.get(name).cloned().unwrap_or(Membership::Unknown);
            facts::node(node, membership, &gpu_label)
        });
        let facts = Facts { nodes: nodes.collect(), groups };
        let config = self.config(&snapshot);
        let world = world::world(&snapshot, settings.clone());
        let seen = self.recorder.as_ref().map(|_| Seen { snapshot, groups: settings });
        Ok(Sight { now, facts, world, config, seen })
    }

    /// What the provider says of its groups beside their sizes. Templates are asked for only if pods
    /// wait, and of groups that may grow for them: nobody else needs them.
    async fn settings(
        &mut self,
        groups: &Result<Vec<Group>, Fault>,
        snapshot: &Snapshot,
    ) -> BTreeMap<GroupId, GroupSettings> {
        let ids: Vec<GroupId> = groups.iter().flatten().map(|group| group.id.clone()).collect();
        if snapshot.pods.iter().any(|pod| pending::is_unschedulable(pod)) {
            let knows = |group: &&Group| group.target.is_ok() && group.instances.is_ok();
            let known = groups.iter().flatten().filter(knows);
            let known: Vec<GroupId> = known.map(|group| group.id.clone()).collect();
            self.reader.read_templates(&known).await;
        }
        let settings = |group: GroupId| {
            let options = self.reader.options(&group).copied();
            let template = self.reader.known_template(&group);
            let settings = GroupSettings {
                template: template.map(|template| Arc::new(node_of(template))),
                utilization_threshold: options.map(|it| it.utilization_threshold),
                ignores_daemon_sets: options.map(|it| it.ignores_daemon_sets),
                is_zero_or_max: options.is_some_and(|it| it.is_zero_or_max),
            };
            (group, settings)
        };
        ids.into_iter().map(settings).collect()
    }

    /// With the expanders as the priorities have them now.
    fn config(&mut self, snapshot: &Snapshot) -> Config {
        if let Err(error) = self.preferences.follow(snapshot.priorities.as_ref()) {
            self.on_bad_priorities(&error);
        }
        let mut config = self.options.plans.clone();
        match self.preferences.expanders() {
            Ok(expanders) => config.scale_up.expanders = expanders,
            Err(error) => tracing::error!(%error, "the expanders were checked when we started"),
        }
        config
    }

    /// The last good ones are kept.
    fn on_bad_priorities(&self, error: &world::PrioritiesError) {
        let note = super::chain(error);
        tracing::warn!(error = note, "the priorities are left as they were");
        if self.options.mode == Mode::Act {
            let (about, reason) = (About::Status, "PriorityConfigMapInvalid");
            self.cluster.tell(Event { about, reason, is_warning: true, note });
        }
    }

    /// Empty where the provider knows of none.
    async fn gpu_label(&self) -> String {
        match self.reader.provider().gpu_label().await {
            Ok(label) => label,
            Err(Error::Unsupported { .. }) => String::new(),
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::debug!(error, "which nodes have GPUs is not known");
                String::new()
            }
        }
    }
}
