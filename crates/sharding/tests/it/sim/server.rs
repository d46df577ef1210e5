//! An API server with compare-and-swap, and the record of what it accepted.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use sharding::core::fence::{self, Operation, Part, Write, Writer};
use sharding::core::history::{Fact, Holding, Labels};
use sharding::core::key::Kinds;
use sharding::core::lease::Lease;
use sharding::core::names::InstanceId;
use sharding::core::object::{LabelChange, Object, ObjectName, Uid, Version};
use sharding::core::partition::table::Kept;
use sharding::core::sharder::{KindSet, Selector};

const SHARDER: &str = "windlass-sharder";

pub(crate) struct Server {
    pub(crate) objects: BTreeMap<ObjectName, Object>,
    pub(crate) leases: BTreeMap<(InstanceId, String), Lease>,
    pub(crate) table: Option<Kept>,
    ring_version: Version,
    pub(crate) kinds: Kinds,
    is_fenced: bool,
    revision: u64,
    /// What watches show, in order.
    pub(crate) changes: Vec<Change>,
    pub(crate) facts: Vec<Fact>,
}

#[derive(Clone, Debug)]
pub(crate) enum Change {
    Object { before: Option<Object>, after: Option<Object> },
    Lease { before: Option<Lease>, after: Option<Lease> },
}

/// Why a write was not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    Conflict,
    Gone,
    Forbidden,
}

/// Who asks.
#[derive(Clone, Debug)]
pub(crate) enum Asker {
    Instance(InstanceId),
    Sharder,
}

// === impl Server ===

impl Server {
    pub(crate) fn new(kinds: Kinds, is_fenced: bool) -> Self {
        Self {
            objects: BTreeMap::new(),
            leases: BTreeMap::new(),
            table: None,
            ring_version: Version("1".to_owned()),
            kinds,
            is_fenced,
            revision: 1,
            changes: Vec::new(),
            facts: Vec::new(),
        }
    }

    pub(crate) fn create(&mut self, mut object: Object, parent: Option<Uid>) {
        object.version = self.next_version();
        self.facts.push(Fact::Created { object: object.uid.clone(), parent });
        self.changes.push(Change::Object { before: None, after: Some(object.clone()) });
        self.objects.insert(object.name.clone(), object);
    }

    /// Changes the labels, if the object has the version; or whatever version it has.
    pub(crate) fn is_unassigned(&self, name: &ObjectName) -> bool {
        self.objects.get(name).is_some_and(|object| object.shard.is_none())
    }

    pub(crate) fn label(
        &mut self,
        asker: &Asker,
        (name, version): (&ObjectName, Option<&Version>),
        change: &LabelChange,
    ) -> Result<Object, Refused> {
        let before = self.objects.get(name).cloned().ok_or(Refused::Gone)?;
        if version.is_some_and(|version| *version != before.version) {
            return Err(Refused::Conflict);
        }
        let after = before.clone().with(change);
        self.put(asker, before, after)
    }

    /// Some other change to the object, such as of its status.
    pub(crate) fn touch(&mut self, asker: &Asker, name: &ObjectName) -> Result<Object, Refused> {
        let before = self.objects.get(name).cloned().ok_or(Refused::Gone)?;
        self.put(asker, before.clone(), before)
    }

    fn put(&mut self, asker: &Asker, before: Object, mut after: Object) -> Result<Object, Refused> {
        if self.is_fenced && !self.is_admitted(asker, &before, &after) {
            return Err(Refused::Forbidden);
        }
        after.version = self.next_version();
        if let Asker::Instance(by) = asker {
            let (object, by, shard) = (after.uid.clone(), by.clone(), before.shard.clone());
            self.facts.push(Fact::Wrote { object, by, shard });
        }
        if (&before.shard, before.drain) != (&after.shard, after.drain) {
            let labels = Labels { shard: after.shard.clone(), drain: after.drain };
            self.facts.push(Fact::Labelled(after.uid.clone(), labels));
        }
        self.changes.push(Change::Object { before: Some(before), after: Some(after.clone()) });
        self.objects.insert(after.name.clone(), after.clone());
        Ok(after)
    }

    fn is_admitted(&self, asker: &Asker, before: &Object, after: &Object) -> bool {
        let drains = [before, after].map(|object| object.drain.map(|drain| drain.to_string()));
        let labels =
            |object: &'_ Object, drain: &'_ Option<String>| -> (Option<String>, Option<String>) {
                (object.shard.as_ref().map(ToString::to_string), drain.clone())
            };
        let (old, new) = (labels(before, &drains[0]), labels(after, &drains[1]));
        let is_main = self.kinds.main.contains_key(&before.name.kind);
        let write = Write {
            writer: match asker {
                Asker::Instance(id) => Writer::Instance(Some(id.as_str())),
                Asker::Sharder => Writer::Sharder,
            },
            operation: Operation::Update,
            part: if is_main { Part::Main } else { Part::Controlled },
            before: fence::Labels { shard: old.0.as_deref(), drain: old.1.as_deref() },
            after: fence::Labels { shard: new.0.as_deref(), drain: new.1.as_deref() },
            has_controller: before.controller.is_some(),
            is_scale: false,
        };
        fence::admit(&write).is_ok()
    }

    pub(crate) fn put_lease(
        &mut self,
        mut lease: Lease,
        is_new: bool,
        is_guarded: bool,
        now: Timestamp,
    ) -> Result<Lease, Refused> {
        let key = (lease.id.clone(), lease.namespace.clone());
        let before = self.leases.get(&key).cloned();
        match &before {
            Some(_) if is_new => return Err(Refused::Conflict),
            None if !is_new => return Err(Refused::Gone),
            Some(before) if is_guarded && before.version != lease.version => {
                return Err(Refused::Conflict);
            }
            _ => {}
        }
        lease.created = before.as_ref().map_or(now, |before| before.created);
        lease.state = before.as_ref().and_then(|before| before.state.clone());
        lease.version = self.next_version();
        let lasts = lease.stated_duration();
        let holding = match lease.holder.as_deref() {
            None => Holding::Nobody,
            Some(SHARDER) => Holding::Sharder { lasts },
            Some(_) if lease.marks.hold.is_some() => Holding::Restarting,
            Some(_) => Holding::Instance { lasts },
        };
        let word = |lease: &Lease| (lease.holder.clone(), lease.renewed);
        if before.as_ref().map(word) != Some(word(&lease)) {
            self.facts.push(Fact::Held(lease.id.clone(), holding));
        }
        self.changes.push(Change::Lease { before, after: Some(lease.clone()) });
        self.leases.insert(key, lease.clone());
        Ok(lease)
    }

    pub(crate) fn show_state(&mut self, id: &InstanceId, namespace: &str, word: &str) {
        let key = (id.clone(), namespace.to_owned());
        let Some(before) = self.leases.get(&key).cloned() else { return };
        let (state, version) = (Some(word.to_owned()), self.next_version());
        let after = Lease { state, version, ..before.clone() };
        self.changes.push(Change::Lease { before: Some(before), after: Some(after.clone()) });
        self.leases.insert(key, after);
    }

    /// Whoever holds it.
    pub(crate) fn delete_lease(
        &mut self,
        id: &InstanceId,
        namespace: &str,
        version: Option<&Version>,
    ) -> Result<(), Refused> {
        let key = (id.clone(), namespace.to_owned());
        let before = self.leases.get(&key).cloned().ok_or(Refused::Gone)?;
        if version.is_some_and(|version| *version != before.version) {
            return Err(Refused::Conflict);
        }
        self.leases.remove(&key);
        self.facts.push(Fact::Held(id.clone(), Holding::Absent));
        self.changes.push(Change::Lease { before: Some(before), after: None });
        Ok(())
    }

    pub(crate) fn table(&self) -> (Option<Kept>, Version) {
        (self.table.clone(), self.ring_version.clone())
    }

    pub(crate) fn put_table(&mut self, kept: Kept, version: &Version) -> Result<Version, Refused> {
        if *version != self.ring_version {
            return Err(Refused::Conflict);
        }
        self.table = Some(kept);
        self.ring_version = self.next_version();
        Ok(self.ring_version.clone())
    }

    pub(crate) fn list(&self, kinds: KindSet, selector: &Selector) -> Vec<Object> {
        let is_wanted = |object: &&Object| {
            let is_main = self.kinds.main.contains_key(&object.name.kind);
            let is_kind = is_main == (kinds == KindSet::Main);
            is_kind
                && match selector {
                    Selector::All => true,
                    Selector::Of(id) => object.shard.as_ref() == Some(id),
                    Selector::NotOf(ids) => {
                        !object.shard.as_ref().is_some_and(|id| ids.contains(id))
                    }
                }
        };
        self.objects.values().filter(is_wanted).cloned().collect()
    }

    pub(crate) fn children(
        &self,
        from: Option<&InstanceId>,
        parents: &BTreeSet<Uid>,
    ) -> Vec<Object> {
        let is_wanted = |object: &&Object| {
            let is_child =
                object.controller.as_ref().is_some_and(|owner| parents.contains(&owner.uid));
            is_child && object.shard.is_some() && (from.is_none() || object.shard.as_ref() == from)
        };
        self.objects.values().filter(is_wanted).cloned().collect()
    }

    fn next_version(&mut self) -> Version {
        self.revision += 1;
        Version(self.revision.to_string())
    }
}
