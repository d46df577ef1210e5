//! What whoever asks is shown: the last iteration, and who leads. Written by the loop, read by the pages.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use registry::status::Status;
use registry::{GroupId, InstanceId, NodeName, Registry, Target};
use serde::Serialize;

use crate::core::{Account, Drains, GroupVerdict, PodKey, PodVerdict};
use crate::provider::Method;

/// The latest of it. Clones show the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shown(Arc<Mutex<View>>);

/// What one iteration leaves to look at.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    pub(crate) standing: Standing,
    pub(crate) last: Option<Arc<Last>>,
    /// Why the last iteration failed, if it did.
    pub(crate) fault: Option<String>,
}

/// The last iteration that could look.
#[derive(Debug)]
pub(crate) struct Last {
    pub(crate) registry: Registry,
    /// Why it did what it did.
    pub(crate) account: Account,
    /// Removals under way when it ended.
    pub(crate) drains: Drains,
    /// What the provider has said it cannot do, by group.
    pub(crate) unsupported: BTreeMap<GroupId, Vec<Method>>,
    pub(crate) now: Timestamp,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Standing {
    #[default]
    Starting,
    Standby {
        leader: Option<String>,
    },
    Leading,
    /// Leads nothing and changes nothing.
    Observing,
}

/// What `status` is answered.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    identity: String,
    standing: Standing,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
    #[serde(flatten)]
    status: Option<Status>,
}

// === impl Shown ===

impl Shown {
    /// What was seen while it led soon is so no more, and nothing in an explanation says how old it is.
    pub(crate) fn set_standing(&self, standing: Standing) {
        let mut view = self.0.lock();
        if matches!(standing, Standing::Standby { .. }) {
            *view = View::default();
        }
        view.standing = standing;
    }

    pub(crate) fn set_fault(&self, fault: String) {
        self.0.lock().fault = Some(fault);
    }

    pub(crate) fn set_last(&self, last: Last) {
        let mut view = self.0.lock();
        view.last = Some(Arc::new(last));
        view.fault = None;
    }

    pub(crate) fn last(&self) -> Option<Arc<Last>> {
        self.0.lock().last.clone()
    }

    /// The status in JSON.
    pub(crate) fn status(&self, identity: &str) -> String {
        let View { standing, last, fault } = self.0.lock().clone();
        let status = last.map(|last| last.registry.status(last.now));
        let answer = Answer { identity: identity.to_owned(), standing, fault, status };
        serde_json::to_string(&answer).expect("keys are text and values are finite")
    }

    /// Why a node, a group, an instance or a pod is what it is; nothing if there is none of that name.
    pub(crate) fn explain(&self, name: &str) -> Option<String> {
        let last = self.0.lock().last.clone()?;
        let node = Target::Node(NodeName(name.to_owned()));
        let group = Target::Group(GroupId(name.to_owned()));
        let instance = Target::Instance(InstanceId(name.to_owned()));
        let explain = |target: &Target| last.registry.explain(target, last.now);
        let with = |text: String, more: Vec<String>| {
            more.into_iter().fold(text, |text, line| format!("{text}\n{line}"))
        };
        explain(&node)
            .map(|text| with(text, last.node(name)))
            .or_else(|| explain(&group).map(|text| with(text, last.group(name))))
            .or_else(|| explain(&instance))
            .or_else(|| last.pod(name))
    }
}

// === impl Last ===

impl Last {
    /// What the last iteration thought of a node.
    fn node(&self, name: &str) -> Vec<String> {
        let account = &self.account;
        let kept = account.kept.get(name).map(|against| format!("stays    {against}"));
        let unneeded = account.unneeded.contains(name).then(|| {
            let since = self.registry.unneeded_since(&NodeName(name.to_owned()));
            let since = since.map(|at| format!(", since {}", at.strftime("%T")));
            format!("unneeded its pods find a place elsewhere{}", since.unwrap_or_default())
        });
        let drain = self.drains.iter().find(|drain| drain.order.node.as_str() == name);
        let drain = drain.map(|drain| {
            let (reason, since) = (drain.order.reason, drain.began.strftime("%T"));
            format!("drain    {reason:?}, since {since}: {}", drain.phase)
        });
        let waits = account.cooldown.as_ref().filter(|_| unneeded.is_some());
        let waits = waits.map(|cooldown| format!("waits    {cooldown}"));
        unneeded.into_iter().chain(kept).chain(waits).chain(drain).collect()
    }

    /// What it thought of expanding a group.
    fn group(&self, name: &str) -> Vec<String> {
        let words = |verdict: &GroupVerdict| match verdict {
            GroupVerdict::Unusable(why) => format!("refused: {why}"),
            GroupVerdict::NotNeeded => "no pod waits for a node".to_owned(),
            GroupVerdict::Useless => "a new node would help no pod that waits".to_owned(),
            GroupVerdict::Offered(offer) => format!(
                "{} new nodes would take {} pods; another group was chosen",
                offer.new_nodes, offer.pods
            ),
            GroupVerdict::Grows { by } => format!("grows by {by}"),
        };
        let verdict = self.account.groups.get(name).map(words);
        let lacks = self.unsupported.get(name).map(|methods| {
            let methods: Vec<&str> = methods.iter().map(|method| method.as_str()).collect();
            format!("lacks    {}: the provider does not support it", methods.join(", "))
        });
        verdict.map(|words| format!("scale-up {words}")).into_iter().chain(lacks).collect()
    }

    /// A pod that waits, by `namespace/name`, or by its name alone.
    fn pod(&self, name: &str) -> Option<String> {
        let is_meant = |key: &PodKey| key.name == name || key.to_string() == name;
        let (key, verdict) = self.account.pods.iter().find(|(key, _)| is_meant(key))?;
        let heading = format!("pod {key}");
        let says = match verdict {
            PodVerdict::Expendable => "its priority is too low to bring a node".to_owned(),
            PodVerdict::TooYoung { until } => {
                format!("too young to bring a node before {}", until.strftime("%T"))
            }
            PodVerdict::Nominated { node } => format!("waits for others to leave node {node}"),
            PodVerdict::Unsupported(what) => what.clone(),
            PodVerdict::FitsNode => "fits a node; the scheduler will find it".to_owned(),
            PodVerdict::FitsUpcoming { group } => format!("fits a node of {group} that is to come"),
            PodVerdict::Triggered { groups } => {
                let groups: Vec<&str> = groups.iter().map(GroupId::as_str).collect();
                format!("nodes were asked for in {}", groups.join(", "))
            }
            PodVerdict::Awaits => "a group would help; another was chosen this time".to_owned(),
            PodVerdict::Refused(refusals) => {
                let lines = refusals.iter().map(|(group, why)| format!("\n  {group:<8} {why}"));
                format!("no group helps{}", lines.collect::<String>())
            }
        };
        Some(format!("{heading}\nscale-up {says}"))
    }
}

#[cfg(test)]
mod tests {
    use registry::{Config, Facts, Group, Options};

    use super::*;

    /// Shows a group.
    fn shown(unsupported: Vec<Method>) -> Shown {
        let now = "2026-03-01T08:00:00Z".parse().unwrap();
        let group = Group {
            id: "pool".into(),
            min: 0,
            max: 10,
            exists: true,
            options: Options::default(),
            target: Ok(0),
            instances: Ok(Vec::new()),
        };
        let mut registry = Registry::new(Config::default());
        registry.observe(now, &Facts { nodes: Vec::new(), groups: Ok(vec![group]) });
        let shown = Shown::default();
        shown.set_last(Last {
            registry,
            account: Account::default(),
            drains: Drains::default(),
            unsupported: [("pool".into(), unsupported)].into(),
            now,
        });
        shown
    }

    #[test]
    fn what_a_provider_cannot_do_is_shown_on_the_group() {
        let words = shown(vec![Method::NodeGroupDeleteNodes]).explain("pool").unwrap();
        let expected = "\nlacks    NodeGroupDeleteNodes: the provider does not support it";
        assert!(words.ends_with(expected), "{words}");
    }

    /// A replica that had led told for good what was so at the end of that.
    #[test]
    fn who_leads_no_more_shows_nothing_of_that_time() {
        let shown = shown(Vec::new());
        shown.set_standing(Standing::Leading);
        assert!(shown.explain("pool").is_some());
        shown.set_fault("the lead is lost".to_owned());
        shown.set_standing(Standing::Standby { leader: Some("other".to_owned()) });
        assert_eq!(shown.explain("pool"), None);
        let standby = r#"{"identity":"me","standing":{"standby":{"leader":"other"}}}"#;
        assert_eq!(shown.status("me"), standby);
    }
}
