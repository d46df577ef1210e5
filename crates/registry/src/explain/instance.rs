//! An instance without Node, explained.

use jiff::Timestamp;

use super::Account;
use crate::class::Class;
use crate::id::InstanceId;
use crate::registry::Registry;
use crate::time::{clock, elapsed, words};
use crate::view::InstanceView;

// === impl Registry ===

impl Registry {
    pub(super) fn explain_instance(&self, id: &InstanceId, now: Timestamp) -> Option<Account> {
        let instance = self.view.instances.get(id)?;
        let group = format!("group {}", instance.group);
        let mut account = Account::of(&[format!("instance {id}"), group]);
        let (lasted, since) = (words(elapsed(instance.since, now)), clock(instance.since, now));
        account.say("class", &format!("{} for {lasted}, since {since}", instance.class));
        account.say("because", &self.because_instance(instance, now));
        account.say("next", &self.next_of_instance(instance, now));
        Some(account)
    }

    fn because_instance(&self, instance: &InstanceView, now: Timestamp) -> String {
        let listed = format!("listed since {}", clock(instance.first_listed, now));
        match (&instance.error, instance.class) {
            (_, Class::CloudDeleting) => format!("{listed}, being deleted"),
            (Some(code), Class::CreateFailed) => format!("{listed}, not created: {code}"),
            _ => {
                let memory = self.state.groups.get(&instance.group);
                let times = memory.map_or(self.config.times, |memory| memory.profile.times);
                format!("{listed}, no Node has registered; limit {}", words(times.provision))
            }
        }
    }

    fn next_of_instance(&self, instance: &InstanceView, now: Timestamp) -> String {
        let is_useless = matches!(instance.class, Class::CreateFailed | Class::LongUnregistered);
        let is_kept = self.view.cluster.is_unhealthy;
        match (instance.deadline, self.removals_held_until(now)) {
            _ if is_useless && is_kept && !self.config.removes_unregistered_when_unhealthy => {
                "stays: the cluster is unhealthy".to_owned()
            }
            (_, Some(until)) if is_useless => format!("delete at {}", clock(until, now)),
            _ if is_useless => "delete now".to_owned(),
            (Some(at), _) => format!("LongUnregistered at {}", clock(at, now)),
            _ => "the provider deletes it".to_owned(),
        }
    }
}
