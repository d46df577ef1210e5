//! Reads all groups in one go, so many calls at a time, and keeps what has to outlive an iteration: who
//! is in which group, and the last good options and templates. A group's failed call touches that
//! group alone.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt, stream};
use jiff::Timestamp;
use registry::{Fault, Group, GroupId, Instance, Membership, NodeName};

use super::memberships::Memberships;
use super::{Error, GroupOptions, ListedGroup, NodeRef, Provider, Template};

/// Calls under way at once while everything is read.
const CALLS_MAX: usize = 16;

/// After so many questions without an answer the rest waits for the next iteration: thousands of nodes
/// at so many at a time would be minutes in which nothing else is looked at.
const SILENCES_MAX: usize = 16;

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

/// What a provider says of a group's sizes.
struct ReadSizes {
    target: Result<i64, Fault>,
    instances: Result<Vec<Instance>, Fault>,
    /// One of them was not answered at all.
    is_silent: bool,
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
        let ReadSizes { mut target, instances, is_silent } = self.read_sizes(&id).await;
        let options = if is_silent {
            self.options.get(&id).copied()
        } else {
            let read = self.read_options(&id, defaults).await;
            // Without its options a group might be judged by times that are too short for it.
            target = read.as_ref().map_err(Clone::clone).and(target);
            read.ok()
        };
        let times = options.as_ref().map_or(defaults.times, |options| options.times);
        let group = Group { id, min, max, exists: true, options: times, target, instances };
        ReadGroup { group, options }
    }

    /// A provider that is silent about a group is waited for once: the group is stale whatever else it
    /// would say, and others are waiting.
    async fn read_sizes(&self, group: &GroupId) -> ReadSizes {
        let target = self.provider.target(group).await;
        if let Err(error @ Error::Unknown { .. }) = &target {
            let instances = Err(Fault("not asked for after that".to_owned()));
            return ReadSizes { target: Err(error.to_fault()), instances, is_silent: true };
        }
        let instances = self.provider.instances(group).await;
        ReadSizes {
            is_silent: instances.as_ref().is_err_and(Error::is_unknown),
            target: target.map_err(|error| error.to_fault()),
            instances: instances.map_err(|error| error.to_fault()),
        }
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

    /// Who is in which group. Nodes that are not named are forgotten. Nodes about which the provider was
    /// silent are asked about last, so that they keep nobody else from being known.
    pub async fn memberships(
        &mut self,
        nodes: &[NodeRef],
        now: Timestamp,
    ) -> BTreeMap<NodeName, Membership> {
        self.memberships.retain(&nodes.iter().map(|node| &node.name).collect());
        let unknown = nodes.iter().filter(|node| self.memberships.get(node, now).is_none());
        let mut unknown: Vec<&NodeRef> = unknown.collect();
        unknown.sort_by_key(|node| self.memberships.was_silent(node));
        let provider = &self.provider;
        let questions: Vec<_> = unknown
            .into_iter()
            .map(|node| async move { (node, provider.group_of(node).await) })
            .collect();
        let mut answers = stream::iter(questions).buffer_unordered(CALLS_MAX);
        let mut silences = 0;
        while silences < SILENCES_MAX
            && let Some((node, answer)) = answers.next().await
        {
            match answer {
                Ok(group) => self.memberships.insert(node, group, now),
                Err(error) => {
                    if error.is_unknown() {
                        silences += 1;
                        self.memberships.on_silence(node);
                    }
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(node = %node.name, error, "the node's group is not known");
                }
            }
        }
        drop(answers);
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
