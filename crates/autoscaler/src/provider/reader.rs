//! Reads all groups in one go, so many calls at a time, and keeps what has to outlive an iteration: who
//! is in which group, and the last good options and templates. A group's failed call touches that
//! group alone.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt, stream};
use jiff::Timestamp;
use registry::{Fault, Group, GroupId, Membership, NodeName};

use super::memberships::Memberships;
use super::{Error, GroupOptions, ListedGroup, NodeRef, Provider, Template};

/// Calls under way at once while everything is read.
const CALLS_MAX: usize = 16;

/// What is read of one provider.
#[derive(Debug)]
pub struct Reader<P> {
    provider: P,
    memberships: Memberships,
    options: BTreeMap<GroupId, GroupOptions>,
    templates: BTreeMap<GroupId, Template>,
}

/// A group, and the options it was read with.
struct ReadGroup {
    group: Group,
    options: Option<GroupOptions>,
}

// === impl Reader ===

impl<P: Provider> Reader<P> {
    pub fn new(provider: P) -> Self {
        Self {
            provider,
            memberships: Memberships::default(),
            options: BTreeMap::new(),
            templates: BTreeMap::new(),
        }
    }

    pub fn provider(&self) -> &P {
        &self.provider
    }

    /// Every group with its target, its instances and its options. Fails as a whole only if the
    /// listing does.
    pub async fn groups(&mut self, defaults: &GroupOptions) -> Result<Vec<Group>, Fault> {
        let listed = self.provider.groups().await.map_err(|error| error.to_fault())?;
        let ids: BTreeSet<GroupId> = listed.iter().map(|group| group.id.clone()).collect();
        self.options.retain(|id, _| ids.contains(id));
        self.templates.retain(|id, _| ids.contains(id));
        let reads = listed.into_iter().map(|group| self.group(group, defaults));
        let reads: Vec<_> = reads.collect();
        let read: Vec<ReadGroup> = stream::iter(reads).buffered(CALLS_MAX).collect().await;
        let keep = |read: ReadGroup| {
            if let Some(options) = read.options {
                self.options.insert(read.group.id.clone(), options);
            }
            read.group
        };
        Ok(read.into_iter().map(keep).collect())
    }

    /// What the group sets for itself, as last read; the defaults before that.
    #[must_use]
    pub fn options(&self, group: &GroupId) -> Option<&GroupOptions> {
        self.options.get(group)
    }

    async fn group(&self, listed: ListedGroup, defaults: &GroupOptions) -> ReadGroup {
        let ListedGroup { id, min, max, .. } = listed;
        let target = self.provider.target(&id).await.map_err(|error| error.to_fault());
        let instances = self.provider.instances(&id).await.map_err(|error| error.to_fault());
        let options = self.read_options(&id, defaults).await;
        let times = options.as_ref().map_or(defaults.times, |options| options.times);
        // Without its options a group might be judged by times that are too short for it.
        let target = options.as_ref().map_err(Clone::clone).and(target);
        let options = options.ok();
        let group = Group { id, min, max, exists: true, options: times, target, instances };
        ReadGroup { group, options }
    }

    /// The last good ones if they cannot be read now.
    async fn read_options(
        &self,
        group: &GroupId,
        defaults: &GroupOptions,
    ) -> Result<GroupOptions, Fault> {
        match self.provider.options(group, defaults).await {
            Ok(options) => Ok(options),
            Err(Error::Unsupported { .. }) => Ok(*defaults),
            Err(error) => self.options.get(group).copied().ok_or_else(|| error.to_fault()),
        }
    }

    /// Asks what new nodes of these groups would be. Where there is no answer, the last good one counts.
    pub async fn read_templates(&mut self, groups: &[GroupId]) {
        let provider = &self.provider;
        let questions = groups.iter().map(|group| async move { provider.template(group).await });
        let questions: Vec<_> = questions.collect();
        let answers: Vec<_> = stream::iter(questions).buffered(CALLS_MAX).collect().await;
        for (group, answer) in groups.iter().zip(answers) {
            match answer {
                Ok(Some(template)) => _ = self.templates.insert(group.clone(), template),
                Ok(None) | Err(Error::Unsupported { .. }) => {}
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(%group, error, "what its nodes would be is not told");
                }
            }
        }
    }

    /// What a new node of the group would be, by the provider's last good word.
    #[must_use]
    pub fn known_template(&self, group: &GroupId) -> Option<&Template> {
        self.templates.get(group)
    }

    /// Who is in which group. Nodes that are not named are forgotten.
    pub async fn memberships(
        &mut self,
        nodes: &[NodeRef],
        now: Timestamp,
    ) -> BTreeMap<NodeName, Membership> {
        self.memberships.retain(&nodes.iter().map(|node| &node.name).collect());
        let unknown = nodes.iter().filter(|node| self.memberships.get(node, now).is_none());
        let unknown: Vec<&NodeRef> = unknown.collect();
        let provider = &self.provider;
        let questions = unknown.iter().map(|node| async move { provider.group_of(node).await });
        let questions: Vec<_> = questions.collect();
        let answers: Vec<_> = stream::iter(questions).buffered(CALLS_MAX).collect().await;
        for (node, answer) in unknown.into_iter().zip(answers) {
            match answer {
                Ok(group) => self.memberships.insert(node, group, now),
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(node = %node.name, error, "the node's group is not known");
                }
            }
        }
        nodes.iter().map(|node| (node.name.clone(), self.membership(node, now))).collect()
    }

    fn membership(&self, node: &NodeRef, now: Timestamp) -> Membership {
        match self.memberships.get(node, now) {
            Some(Some(group)) => Membership::Group(group.clone()),
            Some(None) => Membership::Unmanaged,
            None => Membership::Unknown,
        }
    }
}
