//! Which groups there are, and which of them have sizes to go by.

use std::collections::{BTreeMap, BTreeSet};

use super::{Place, Reading, Sieve, Sizes};
use crate::facts::{Facts, Group, Instance};
use crate::id::GroupId;
use crate::notice::Report;
use crate::state::Profile;

// === impl Sieve ===

impl Sieve<'_> {
    /// With all instances of those whose sizes are known, by id.
    pub(super) fn groups<'f>(
        &mut self,
        facts: &'f Facts,
    ) -> (BTreeMap<GroupId, Reading<'f>>, Vec<Place<'f>>) {
        let groups = match &facts.groups {
            Ok(groups) => groups,
            Err(fault) => {
                self.reports.push(Report::GroupsUnknown { reason: fault.0.clone() });
                return (self.remembered(&fault.0), Vec::new());
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
        let mut places = places(&readings);
        self.find_shared(&mut readings, &mut places);
        self.report_stale(&readings);
        (readings, places)
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
    fn find_shared<'f>(
        &mut self,
        readings: &mut BTreeMap<GroupId, Reading<'f>>,
        places: &mut Vec<Place<'f>>,
    ) {
        let mut sharing: BTreeSet<&GroupId> = BTreeSet::new();
        for same in places.chunk_by(|one, other| one.id == other.id).filter(|it| it.len() > 1) {
            let instance = same[0].instance.id.clone();
            self.reports.push(Report::InstanceInSeveralGroups { instance });
            sharing.extend(same.iter().map(|place| place.group));
        }
        if sharing.is_empty() {
            return;
        }
        places.retain(|place| !sharing.contains(place.group));
        for group in sharing {
            if let Some(reading) = readings.get_mut(group) {
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

fn places<'f>(readings: &BTreeMap<GroupId, Reading<'f>>) -> Vec<Place<'f>> {
    let good = readings.values().filter_map(|reading| reading.sizes.as_ref().ok());
    let place = |group, instance: &'f Instance| Place { id: instance.id.as_str(), group, instance };
    let places = good.flat_map(|it| it.instances.iter().map(|each| place(it.group, each)));
    let mut places: Vec<Place<'f>> = places.collect();
    places.sort_by_key(|place| place.id);
    places
}

fn sizes(group: &Group) -> Result<Sizes<'_>, String> {
    let target = group.target.as_ref().map_err(|fault| format!("target: {}", fault.0))?;
    let listed = group.instances.as_ref().map_err(|fault| format!("instances: {}", fault.0))?;
    let mut instances: Vec<&Instance> = listed.iter().collect();
    instances.sort();
    // Which of two with the same id counts must not depend on their order: it is the last.
    instances.dedup_by(|next, last| {
        let is_same = next.id == last.id;
        if is_same {
            *last = *next;
        }
        is_same
    });
    let target = u32::try_from(*target).unwrap_or(u32::MAX);
    Ok(Sizes { group: &group.id, target, instances })
}
