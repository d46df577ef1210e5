//! Children go before their parent: when an object has been given up, those it controls are given to
//! the new owner first, so that it finds them when it gets the parent.

use std::collections::{BTreeMap, BTreeSet};

use super::Sharder;
use super::message::{Answer, Command, Token};
use crate::core::key::Role;
use crate::core::names::InstanceId;
use crate::core::object::{Object, ObjectName};
use crate::core::time::{Moment, Now};

/// How it stands with the children of an object, or with one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Family {
    /// It has none.
    None,
    /// They will be looked for when the object has been given up. `from`: whose they are, if known.
    Wanted { from: Option<InstanceId> },
    /// They are being looked for. `is_outdated`: one of them has gone somewhere since that began, and
    /// what is found may show it where it was before.
    Listed { to: InstanceId, is_outdated: bool },
    /// These are on their way. When none is left, the object may follow.
    Moving { to: InstanceId, left: BTreeSet<ObjectName> },
    /// They are all there.
    Moved { to: InstanceId },
    /// It is itself a child, and goes where its parent will.
    Following { to: InstanceId },
}

/// Searches for children under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Listings {
    asked: BTreeMap<Token, BTreeSet<ObjectName>>,
    /// Given up, their children not yet looked for.
    wanted: BTreeMap<Option<InstanceId>, BTreeSet<ObjectName>>,
    busy: BTreeSet<Option<InstanceId>>,
    from_of: BTreeMap<Token, Option<InstanceId>>,
}

// === impl Listings ===

impl Listings {
    pub(super) fn is_asking(&self, token: Token) -> bool {
        self.asked.contains_key(&token)
    }

    /// The children of the object are to be looked for, among those of its former owner.
    pub(super) fn want(&mut self, from: Option<InstanceId>, name: ObjectName) {
        self.wanted.entry(from).or_default().insert(name);
    }

    fn take(&mut self, token: Token) -> BTreeSet<ObjectName> {
        if let Some(from) = self.from_of.remove(&token) {
            self.busy.remove(&from);
        }
        self.asked.remove(&token).unwrap_or_default()
    }
}

// === impl Sharder ===

impl Sharder {
    /// Whether the object may be given to this instance now. If its children have to go first, sees to
    /// that.
    pub(super) fn may_assign(&mut self, name: &ObjectName, to: &InstanceId, now: Now) -> bool {
        let Some(work) = self.works.get_mut(name) else { return false };
        let bound_for = match &work.family {
            Family::None | Family::Following { .. } => return true,
            // Children are not moved on hearsay: their parent may have an owner by now.
            Family::Wanted { .. } if !work.is_confirmed() => {
                self.reread(name);
                return false;
            }
            Family::Wanted { from } => {
                let from = from.clone();
                work.family = Family::Listed { to: to.clone(), is_outdated: false };
                let from = self.whose_children(from);
                self.works.listings.want(from, name.clone());
                return false;
            }
            Family::Listed { to, .. } | Family::Moving { to, .. } | Family::Moved { to } => {
                to.clone()
            }
        };
        let is_done = matches!(work.family, Family::Moved { .. });
        // Once children are on their way, the parent follows them, unless nobody awaits it there.
        if self.is_ready(&bound_for, now) {
            return is_done;
        }
        let Some(work) = self.works.get_mut(name) else { return false };
        if matches!(work.family, Family::Moving { .. } | Family::Moved { .. }) {
            work.family = Family::Wanted { from: None };
            self.works.look_at(name, now.mono);
        }
        false
    }

    /// One search per former owner at a time, for all its objects that wait for one.
    pub(super) fn tend_families(&mut self) {
        let wanted = std::mem::take(&mut self.works.listings.wanted);
        for (from, names) in wanted {
            if self.works.listings.busy.contains(&from) {
                self.works.listings.wanted.insert(from, names);
                continue;
            }
            let parents = names.iter().filter_map(|name| self.works.uid(name)).collect();
            let token = self.token();
            let listings = &mut self.works.listings;
            listings.asked.insert(token, names);
            listings.busy.insert(from.clone());
            listings.from_of.insert(token, from.clone());
            self.out.push(Command::ListChildren { token, from, parents });
        }
    }

    pub(super) fn on_children(&mut self, now: Now, token: Token, answer: Answer) {
        let parents = self.works.listings.take(token);
        let Answer::Children(children) = answer else {
            for name in parents {
                if let Some(work) = self.works.get_mut(&name) {
                    work.family = Family::Wanted { from: None };
                    self.works.look_at(&name, now.mono + super::works::RETRY_AFTER);
                }
            }
            return;
        };
        let mut by_parent: BTreeMap<ObjectName, Vec<Object>> = BTreeMap::new();
        for child in children {
            if let Role::Child { parent, .. } = self.options.kinds.role(&child) {
                by_parent.entry(parent).or_default().push(child);
            }
        }
        for name in parents {
            let children = by_parent.remove(&name).unwrap_or_default();
            self.send_ahead(&name, children, now);
        }
    }

    /// Sends the children ahead.
    fn send_ahead(&mut self, name: &ObjectName, children: Vec<Object>, now: Now) {
        let Some(work) = self.works.get_mut(name) else { return };
        let Family::Listed { to, is_outdated } = &mut work.family else { return };
        if std::mem::take(is_outdated) {
            return self.works.listings.want(None, name.clone());
        }
        let to = to.clone();
        let elsewhere = children.into_iter().filter(|child| child.shard.as_ref() != Some(&to));
        let elsewhere: Vec<Object> = elsewhere.collect();
        // A child may be on its way to where an earlier plan, or the parent's last owner, sent it.
        let mut left = self.works.redirect_children(name, &to, now.mono);
        left.extend(elsewhere.iter().map(|child| child.name.clone()));
        for child in elsewhere {
            self.take_up_child(child, &to, now.mono);
        }
        let is_done = left.is_empty();
        if let Some(work) = self.works.get_mut(name) {
            work.family = if is_done { Family::Moved { to } } else { Family::Moving { to, left } };
        }
        self.works.look_at(name, now.mono);
    }

    pub(super) fn on_child_done(&mut self, parent: &ObjectName, child: &ObjectName, now: Moment) {
        let Some(work) = self.works.get_mut(parent) else { return };
        match &mut work.family {
            Family::Listed { is_outdated, .. } => *is_outdated = true,
            Family::Moving { to, left } => {
                left.remove(child);
                if left.is_empty() {
                    work.family = Family::Moved { to: to.clone() };
                    self.works.look_at(parent, now);
                }
            }
            _ => {}
        }
    }
}
