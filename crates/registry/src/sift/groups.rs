//! Which groups there are, and which of them have sizes to go by.

use std::collections::{BTreeMap, BTreeSet};

use super::{Reading, Sieve, Sizes};
use crate::facts::{Facts, Group, Instance};
use crate::id::{GroupId, InstanceId};
use crate::notice::Report;
use crate::state::Profile;

// === impl Sieve ===

impl Sieve<'_> {
    pub(super) fn groups<'f>(&mut self, facts: &'f Facts) -> BTreeMap<GroupId, Reading<'f>> {
        let groups = match &facts.groups {
            Ok(groups) => groups,
            Err(fault) => {
                self.reports.push(Report::GroupsUnknown { reason: fault.0.clone() });
                return self.remembered(&fault.0);
            }
        };
        let mut by_id: BTreeMap<&GroupId, Vec<&Group>> = BTreeMap::new();
        for group in groups {
            by_id.entry(&group.id).or_default().push(group);
        }
        let mut readings = BTreeMap::new();
        for (id, same) in by_id {
            match accept(&same) {
                Ok(group) => _ = readings.insert(id.clone(), self.read(group)),
                Err(reason) => {
                    self.reports.push(Report::GroupIgnored { group: id.clone(), reason });
                }
            }
        }
        self.find_shared(&mut readings);
        self.report_stale(&readings);
        readings
    }

    /// The groups of the last listing, of which nothing is known now.
    fn remembered<'f>(&self, reason: &str) -> BTreeMap<GroupId, Reading<'f>> {
        let listed = self.state.groups.iter().filter(|(_, memory)| memory.vanished.is_none());
        let reading = |profile| Reading { profile, sizes: Err(reason.to_owned()) };
        listed.map(|(id, memory)| (id.clone(), reading(memory.profile))).collect()
    }

    fn read<'f>(&mut self, group: &'f Group) -> Reading<'f> {
        let (times, refused) = self.times.with(&group.options);
        let ignored = |option| Report::OptionIgnored { group: group.id.clone(), option };
        self.reports.extend(refused.into_iter().map(ignored));
        let limit = |size| u32::try_from(size).unwrap_or(u32::MAX);
        let (min, max) = (limit(group.min), limit(group.max));
        Reading { profile: Profile { min, max, exists: group.exists, times }, sizes: sizes(group) }
    }

    /// Who has an instance that others have too is not to be believed.
    fn find_shared(&mut self, readings: &mut BTreeMap<GroupId, Reading<'_>>) {
        let good = readings.values().filter_map(|reading| reading.sizes.as_ref().ok());
        let mut ids: Vec<&InstanceId> = good.flat_map(|it| it.instances.keys().copied()).collect();
        ids.sort();
        let twice = ids.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
        let shared: BTreeSet<&InstanceId> = twice.collect();
        for instance in shared.iter().copied().cloned() {
            self.reports.push(Report::InstanceInSeveralGroups { instance });
        }
        let has_shared =
            |sizes: &Sizes<'_>| shared.iter().any(|it| sizes.instances.contains_key(it));
        for reading in readings.values_mut() {
            if reading.sizes.as_ref().is_ok_and(has_shared) {
                reading.sizes = Err("an instance is listed in another group too".to_owned());
            }
        }
    }

    fn report_stale(&mut self, readings: &BTreeMap<GroupId, Reading<'_>>) {
        for (group, reading) in readings {
            if let Err(reason) = &reading.sizes {
                let (group, reason) = (group.clone(), reason.clone());
                self.reports.push(Report::GroupStale { group, reason });
            }
        }
    }
}

/// The one group of its id, if it makes sense.
fn accept<'f>(same: &[&'f Group]) -> Result<&'f Group, &'static str> {
    let [group] = same else { return Err("its id is listed more than once") };
    let is_size = |size: i64| u32::try_from(size).is_ok();
    let target = group.target.as_ref().copied().unwrap_or(0);
    if group.id.as_str().is_empty() {
        Err("its id is empty")
    } else if !is_size(group.min) || !is_size(group.max) || !is_size(target) {
        Err("a size of it is negative or too large")
    } else if group.min > group.max {
        Err("its minimum is above its maximum")
    } else {
        Ok(group)
    }
}

fn sizes(group: &Group) -> Result<Sizes<'_>, String> {
    let target = group.target.as_ref().map_err(|fault| format!("target: {}", fault.0))?;
    let listed = group.instances.as_ref().map_err(|fault| format!("instances: {}", fault.0))?;
    let mut instances: BTreeMap<&InstanceId, &Instance> = BTreeMap::new();
    for instance in listed {
        // Which of two with the same id counts must not depend on their order.
        let known = instances.entry(&instance.id).or_insert(instance);
        *known = (*known).max(instance);
    }
    let target = u32::try_from(*target).unwrap_or(u32::MAX);
    Ok(Sizes { group: &group.id, target, instances })
}
