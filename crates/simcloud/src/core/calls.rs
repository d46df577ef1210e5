//! What the provider's calls do and answer, and how they are scripted to fail.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use autoscaler::provider::{ListedGroup, Method, NodeRef};
use jiff::Timestamp;
use registry::{GroupId, Instance, NodeName};

use super::after;
use super::cloud::{Cloud, GroupState};
use super::instance;
use super::ledger::Place;
use super::node::Node;
use crate::scenario::{self, Code, GroupOptions, Kind};

/// The label by which the Nodes of this cloud are known.
pub const GROUP_LABEL: &str = "simcloud.windlass.dev/group";

const ZONE_LABEL: &str = "topology.kubernetes.io/zone";

/// Why a call is not answered with what was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("not implemented")]
    Unimplemented,
    #[error("{message}")]
    Failed { code: Code, message: String },
    /// It was carried out, and is not answered.
    #[error("no answer")]
    NoAnswer,
}

/// What a new machine of a group would be, and where.
#[derive(Clone, Debug)]
pub struct Template {
    pub group: scenario::Group,
    pub zone: String,
}

// === impl Template ===

impl Template {
    /// Those of the group, and what every Node says of itself but its name.
    #[must_use]
    pub fn labels(&self) -> BTreeMap<String, String> {
        let own = [(GROUP_LABEL, self.group.id.as_str()), (ZONE_LABEL, &self.zone)];
        let own = own.map(|(key, value)| (key.to_owned(), value.to_owned()));
        self.group.labels.clone().into_iter().chain(own).collect()
    }
}

// === impl Cloud ===

impl Cloud {
    pub fn refresh(&mut self, now: Timestamp) -> Result<(), Refusal> {
        self.begin(now, Method::Refresh, None)?;
        self.end(Method::Refresh, None)
    }

    pub fn groups(&mut self, now: Timestamp) -> Result<Vec<ListedGroup>, Refusal> {
        self.begin(now, Method::NodeGroups, None)?;
        self.end(Method::NodeGroups, None)?;
        let listed = |group: &GroupState| ListedGroup {
            id: group.plan.id.clone(),
            min: group.plan.min.into(),
            max: group.plan.max.into(),
            debug: format!("target {}, {} machines", group.target, group.existing()),
        };
        Ok(self.groups.values().map(listed).collect())
    }

    /// By its id; by its name only if it has none. So a Node that claims a wrong id is a stranger.
    pub fn group_of(&mut self, now: Timestamp, node: &NodeRef) -> Result<Option<GroupId>, Refusal> {
        self.begin(now, Method::NodeGroupForNode, None)?;
        self.end(Method::NodeGroupForNode, None)?;
        let owner = self.groups.iter().find(|(_, group)| group.find(node).is_some());
        Ok(owner.map(|(id, _)| id.clone()))
    }

    pub fn target(&mut self, now: Timestamp, id: &GroupId) -> Result<u32, Refusal> {
        self.begin(now, Method::NodeGroupTargetSize, Some(id))?;
        self.end(Method::NodeGroupTargetSize, Some(id))?;
        let late = |kind: &Kind| match kind {
            Kind::StaleTarget { by } => Some(*by),
            _ => None,
        };
        let late = self.ledger.find(self.now, of(id), late);
        let group = self.group(id)?;
        let then = late.map(|by| self.now.saturating_sub(by).unwrap_or(Timestamp::MIN));
        Ok(then.map_or(group.target, |then| group.target_at(then)))
    }

    pub fn instances(&mut self, now: Timestamp, id: &GroupId) -> Result<Vec<Instance>, Refusal> {
        self.begin(now, Method::NodeGroupNodes, Some(id))?;
        self.end(Method::NodeGroupNodes, Some(id))?;
        let instances = self.group(id)?.instances.values();
        Ok(instances.map(|instance| instance.listed(self.now)).collect())
    }

    pub fn template(&mut self, now: Timestamp, id: &GroupId) -> Result<Option<Template>, Refusal> {
        self.begin(now, Method::NodeGroupTemplateNodeInfo, Some(id))?;
        self.end(Method::NodeGroupTemplateNodeInfo, Some(id))?;
        let group = self.group(id)?;
        let is_missing = |kind: &Kind| matches!(kind, Kind::NoTemplate).then_some(());
        if self.ledger.find(self.now, of(id), is_missing).is_some() {
            return Ok(None);
        }
        let zone = group.next_zone().to_owned();
        Ok(Some(Template { group: group.plan.clone(), zone }))
    }

    pub fn options(&mut self, now: Timestamp, id: &GroupId) -> Result<GroupOptions, Refusal> {
        self.begin(now, Method::NodeGroupGetOptions, Some(id))?;
        self.end(Method::NodeGroupGetOptions, Some(id))?;
        Ok(self.group(id)?.plan.options)
    }

    pub fn gpu_label(&mut self, now: Timestamp) -> Result<String, Refusal> {
        self.begin(now, Method::GpuLabel, None)?;
        self.end(Method::GpuLabel, None)?;
        Ok(self.scenario.gpu_label.clone())
    }

    pub fn gpu_types(&mut self, now: Timestamp) -> Result<BTreeSet<String>, Refusal> {
        self.begin(now, Method::GetAvailableGpuTypes, None)?;
        self.end(Method::GetAvailableGpuTypes, None)?;
        Ok(self.scenario.gpu_types.clone())
    }

    pub fn cleanup(&mut self, now: Timestamp) -> Result<(), Refusal> {
        self.begin(now, Method::Cleanup, None)?;
        self.end(Method::Cleanup, None)
    }

    /// Raises the target, and begins to create what it asks for.
    pub fn increase(
        &mut self,
        now: Timestamp,
        id: &GroupId,
        by: NonZeroU32,
    ) -> Result<(), Refusal> {
        self.begin(now, Method::NodeGroupIncreaseSize, Some(id))?;
        let at = self.now;
        let group = self.group_mut(id)?;
        let (target, max) = (group.target.saturating_add(by.get()), group.plan.max);
        if target > max {
            let message = format!("{target} is more than the group's maximum, {max}");
            return Err(Refusal::Failed { code: Code::FailedPrecondition, message });
        }
        group.set_target(target, at);
        self.fulfil();
        self.end(Method::NodeGroupIncreaseSize, Some(id))
    }

    /// Lowers the target by what it lacks in machines.
    pub fn decrease(
        &mut self,
        now: Timestamp,
        id: &GroupId,
        by: NonZeroU32,
    ) -> Result<(), Refusal> {
        self.begin(now, Method::NodeGroupDecreaseTargetSize, Some(id))?;
        let at = self.now;
        let group = self.group_mut(id)?;
        let (existing, target) = (group.existing(), group.target.checked_sub(by.get()));
        let Some(target) = target.filter(|target| *target >= existing) else {
            let message = format!("{existing} machines exist and would have to be deleted");
            return Err(Refusal::Failed { code: Code::FailedPrecondition, message });
        };
        group.set_target(target, at);
        self.end(Method::NodeGroupDecreaseTargetSize, Some(id))
    }

    /// Begins to delete these machines and lowers the target by as many. All or none: a name that is
    /// not of the group refuses the call.
    pub fn delete(
        &mut self,
        now: Timestamp,
        id: &GroupId,
        nodes: &[NodeRef],
    ) -> Result<(), Refusal> {
        self.begin(now, Method::NodeGroupDeleteNodes, Some(id))?;
        self.refuse_deletion(id)?;
        let slow = |kind: &Kind| match kind {
            Kind::SlowDelete { takes } => Some(*takes),
            _ => None,
        };
        let slow = self.ledger.strike(self.now, of(id), slow);
        let group = self.group(id)?;
        let numbers: BTreeSet<u64> =
            nodes.iter().map(|node| group.find_or_refuse(node)).collect::<Result<_, _>>()?;
        for number in numbers {
            let drawn = self.ledger.draw(&format!("{id} delete"), number);
            let at = self.now;
            let group = self.group_mut(id)?;
            let takes = slow.unwrap_or_else(|| group.plan.delete.pick(drawn));
            group.begin_deletion(number, at, after(at, takes));
        }
        self.end(Method::NodeGroupDeleteNodes, Some(id))
    }

    fn refuse_deletion(&mut self, id: &GroupId) -> Result<(), Refusal> {
        let refusal = |kind: &Kind| match kind {
            Kind::DeleteFails { code, message } => {
                Some(Refusal::Failed { code: *code, message: message.clone() })
            }
            Kind::DeleteUnimplemented => Some(Refusal::Unimplemented),
            _ => None,
        };
        self.ledger.strike(self.now, of(id), refusal).map_or(Ok(()), Err)
    }

    /// What the machine under a Node was made from.
    #[must_use]
    pub fn template_of(&self, node: &Node) -> Option<Template> {
        let group = self.groups.get(&node.group)?.plan.clone();
        Some(Template { group, zone: node.zone.clone() })
    }

    /// What every call begins with: time moves on, and the script may have it fail.
    fn begin(
        &mut self,
        now: Timestamp,
        method: Method,
        group: Option<&GroupId>,
    ) -> Result<(), Refusal> {
        self.step(now);
        let refusal = |kind: &Kind| match kind {
            Kind::CallFails { method: failing, code, message } if *failing == method => {
                Some(Refusal::Failed { code: *code, message: message.clone() })
            }
            _ => None,
        };
        self.ledger.strike(self.now, Place { group, zone: None }, refusal).map_or(Ok(()), Err)
    }

    /// What every call ends with: the script may keep the answer back.
    fn end(&mut self, method: Method, group: Option<&GroupId>) -> Result<(), Refusal> {
        let is_silent = |kind: &Kind| {
            let silent = Kind::TimeoutAfterEffect { method };
            (*kind == silent).then_some(Refusal::NoAnswer)
        };
        self.ledger.strike(self.now, Place { group, zone: None }, is_silent).map_or(Ok(()), Err)
    }

    fn group(&self, id: &GroupId) -> Result<&GroupState, Refusal> {
        self.groups.get(id).ok_or_else(|| no_group(id))
    }

    fn group_mut(&mut self, id: &GroupId) -> Result<&mut GroupState, Refusal> {
        self.groups.get_mut(id).ok_or_else(|| no_group(id))
    }
}

fn of(group: &GroupId) -> Place<'_> {
    Place { group: Some(group), zone: None }
}

fn no_group(id: &GroupId) -> Refusal {
    Refusal::Failed { code: Code::NotFound, message: format!("there is no group `{id}`") }
}

// === impl GroupState ===

impl GroupState {
    fn find(&self, node: &NodeRef) -> Option<u64> {
        let is_meant = |name: &NodeName| {
            if node.provider_id.is_empty() {
                node.name == *name
            } else {
                node.provider_id == instance::id(&self.plan.id, name).0
            }
        };
        let mut all = self.instances.iter();
        all.find(|(_, instance)| is_meant(&instance.name)).map(|(number, _)| *number)
    }

    fn find_or_refuse(&self, node: &NodeRef) -> Result<u64, Refusal> {
        self.find(node).ok_or_else(|| {
            let message = format!("`{}` is not in the group `{}`", node.name, self.plan.id);
            Refusal::Failed { code: Code::NotFound, message }
        })
    }

    /// What is being deleted already is not deleted twice.
    fn begin_deletion(&mut self, number: u64, now: Timestamp, gone_at: Timestamp) {
        let Some(instance) = self.instances.get_mut(&number) else { return };
        if instance.gone_at.is_none() {
            instance.gone_at = Some(gone_at);
            self.set_target(self.target.saturating_sub(1), now);
        }
    }
}
