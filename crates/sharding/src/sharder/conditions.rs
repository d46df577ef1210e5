//! What is to be known about a ring at a glance: `Ready`, `Balanced`, `Fenced`, `Degraded`.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::fence::Fencing;
use super::plan::Problem;
use crate::core::partition::BALANCED_MEAN_MIN;
use crate::core::sharder::Traffic;

/// With more instances than a quarter of the slots, shares get too uneven.
const SLOTS_PER_INSTANCE_MIN: usize = 4;

/// What conditions are made from.
#[derive(Clone, Debug)]
pub(super) struct Facts<'a> {
    pub(super) problems: &'a [Problem],
    pub(super) fencing: &'a Fencing,
    pub(super) traffic: &'a Traffic,
    /// Whether the ring is worked on at all.
    pub(super) is_working: bool,
    pub(super) instances: usize,
    pub(super) ready: usize,
    /// Members of the table.
    pub(super) members: usize,
    /// Its slots; nothing where there are none.
    pub(super) slots: Option<usize>,
    /// Objects, as last counted.
    pub(super) objects: Option<u64>,
    pub(super) imbalance: Option<f64>,
    pub(super) imbalance_max_percent: u32,
}

/// One condition without its dates.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Verdict {
    /// Nothing if it is not known.
    holds: Option<bool>,
    reason: &'static str,
    message: String,
}

/// In their order. A condition keeps its date while it says the same.
pub(super) fn conditions(
    facts: &Facts<'_>,
    generation: Option<i64>,
    (before, now): (&[Condition], Timestamp),
) -> Vec<Condition> {
    let all = [
        ("Ready", ready(facts)),
        ("Balanced", balanced(facts)),
        ("Fenced", fenced(facts.fencing)),
        ("Degraded", degraded(facts)),
    ];
    let dated = all.into_iter().map(|(type_, verdict)| {
        let status = verdict.status();
        let same = before.iter().find(|it| it.type_ == type_ && it.status == status);
        Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: verdict.reason.to_owned(),
            message: verdict.message,
            observed_generation: generation,
            last_transition_time: same
                .map_or_else(|| whole_seconds(now), |it| it.last_transition_time.clone()),
        }
    });
    dated.collect()
}

fn ready(facts: &Facts<'_>) -> Verdict {
    let Facts { instances, ready, .. } = *facts;
    if let Some(problem) = facts.problems.iter().find(|problem| problem.is_fatal()) {
        return Verdict::no(problem.reason(), problem.to_string());
    }
    if !facts.is_working {
        return Verdict::no("NotWorking", "nothing of the ring is worked on yet");
    }
    if ready == 0 {
        return Verdict::no("NoInstances", "no instance is ready; objects wait");
    }
    Verdict::yes("InstancesReady", format!("{ready} of {instances} instances are ready"))
}

fn balanced(facts: &Facts<'_>) -> Verdict {
    let Traffic { unassigned, moving, .. } = *facts.traffic;
    if !facts.is_working {
        return Verdict::unknown("NotWorking", "nothing of the ring is worked on yet");
    }
    if unassigned + moving > 0 {
        let message = format!("{moving} objects are moving, {unassigned} wait for an owner");
        return Verdict::no("Moving", message);
    }
    let Some((imbalance, objects)) = facts.imbalance.zip(facts.objects) else {
        return Verdict::unknown("NotCounted", "objects have not been counted");
    };
    let mean = objects / u64::try_from(facts.members.max(1)).unwrap_or(u64::MAX);
    let message = format!("the fullest instance has {imbalance:.2} times the mean of {mean}");
    let is_even = imbalance <= 1.0 + f64::from(facts.imbalance_max_percent) / 100.0;
    match is_even || mean < BALANCED_MEAN_MIN {
        true => Verdict::yes("Even", message),
        false => Verdict::no("Uneven", message),
    }
}

fn fenced(fencing: &Fencing) -> Verdict {
    match fencing {
        Fencing::Active => Verdict::yes("Active", "former owners are refused"),
        Fencing::Off => Verdict::no("Off", "the ring has no fence: former owners are not refused"),
        Fencing::Settling => Verdict::no("Settling", "the fence is installed and trusted soon"),
        Fencing::Missing => Verdict::no("Missing", "nobody has installed the fence"),
        Fencing::Outdated => {
            let message = "what somebody installed lets pass what the ring's fence would refuse";
            Verdict::no("Outdated", message)
        }
        Fencing::Failed(why) => Verdict::no("NotInstalled", why.clone()),
    }
}

fn degraded(facts: &Facts<'_>) -> Verdict {
    let mut lacks: Vec<(&'static str, String)> =
        facts.problems.iter().map(|it| (it.reason(), it.to_string())).collect();
    if let Some(object) = &facts.traffic.overdue_example {
        let count = facts.traffic.overdue;
        let message = format!("{object}, one of {count}, is not given up and not safe to take");
        lacks.push(("DrainOverdue", message));
    }
    if let Some(object) = &facts.traffic.stuck_example {
        let count = facts.traffic.stuck;
        let message = format!("{object}, one of {count} of those who are gone, cannot be labelled");
        lacks.push(("CannotMove", message));
    }
    let members = facts.members;
    if let Some(slots) = facts.slots
        && members * SLOTS_PER_INSTANCE_MIN > slots
    {
        lacks.push(("TooManyInstances", format!("{members} instances share {slots} slots")));
    }
    let Some((reason, _)) = lacks.first() else {
        return Verdict::no("AsExpected", "nothing is wrong");
    };
    let messages: Vec<&str> = lacks.iter().map(|(_, message)| message.as_str()).collect();
    Verdict::yes(reason, messages.join("; "))
}

/// As the API server keeps it; otherwise what was written would never equal what is read.
pub(super) fn whole_seconds(now: Timestamp) -> Time {
    Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
}

// === impl Verdict ===

impl Verdict {
    fn yes(reason: &'static str, message: impl Into<String>) -> Self {
        Self { holds: Some(true), reason, message: message.into() }
    }

    fn no(reason: &'static str, message: impl Into<String>) -> Self {
        Self { holds: Some(false), reason, message: message.into() }
    }

    fn unknown(reason: &'static str, message: impl Into<String>) -> Self {
        Self { holds: None, reason, message: message.into() }
    }

    fn status(&self) -> &'static str {
        match self.holds {
            Some(true) => "True",
            Some(false) => "False",
            None => "Unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::core::object::{GroupKind, ObjectName};
    use crate::core::spec::GroupResource;

    fn resource(resource: &str) -> GroupResource {
        GroupResource { group: String::new(), resource: resource.to_owned() }
    }

    #[track_caller]
    fn check(change: impl FnOnce(&mut Facts<'_>), expected: &Expect) {
        let traffic = Traffic::default();
        let mut facts = Facts {
            problems: &[],
            fencing: &Fencing::Active,
            traffic: &traffic,
            is_working: true,
            instances: 3,
            ready: 2,
            members: 3,
            slots: Some(1024),
            objects: Some(900),
            imbalance: Some(1.04),
            imbalance_max_percent: 5,
        };
        change(&mut facts);
        let all = conditions(&facts, Some(1), (&[], Timestamp::UNIX_EPOCH));
        let line =
            |it: &Condition| format!("{}={}/{}: {}\n", it.type_, it.status, it.reason, it.message);
        expected.assert_eq(&all.iter().map(line).collect::<String>());
    }

    #[test]
    fn a_ring_that_is_well() {
        check(
            |_| {},
            &expect![[r#"
                Ready=True/InstancesReady: 2 of 3 instances are ready
                Balanced=True/Even: the fullest instance has 1.04 times the mean of 300
                Fenced=True/Active: former owners are refused
                Degraded=False/AsExpected: nothing is wrong
            "#]],
        );
    }

    #[test]
    fn a_ring_without_instances_waits() {
        let traffic = Traffic { unassigned: 7, ..Traffic::default() };
        let traffic = Box::leak(Box::new(traffic));
        check(
            |facts| {
                (facts.ready, facts.instances, facts.traffic) = (0, 0, traffic);
                facts.fencing = &Fencing::Off;
            },
            &expect![[r#"
                Ready=False/NoInstances: no instance is ready; objects wait
                Balanced=False/Moving: 0 objects are moving, 7 wait for an owner
                Fenced=False/Off: the ring has no fence: former owners are not refused
                Degraded=False/AsExpected: nothing is wrong
            "#]],
        );
    }

    #[test]
    fn what_is_missing_is_named_and_the_rest_goes_on() {
        let problems = [
            Problem::Missing(resource("sites")),
            Problem::Denied("not allowed to patch secrets".to_owned()),
        ];
        let problems = Box::leak(Box::new(problems));
        check(
            |facts| facts.problems = problems,
            &expect![[r#"
                Ready=True/InstancesReady: 2 of 3 instances are ready
                Balanced=True/Even: the fullest instance has 1.04 times the mean of 300
                Fenced=True/Active: former owners are refused
                Degraded=True/ResourceMissing: the API server has no sites; not allowed to patch secrets
            "#]],
        );
    }

    #[test]
    fn a_contested_ring_labels_nothing() {
        let contested =
            Problem::Contested { ring: "elder".parse().unwrap(), resource: resource("secrets") };
        let problems = Box::leak(Box::new([contested]));
        check(
            |facts| (facts.problems, facts.is_working) = (problems, false),
            &expect![[r#"
                Ready=False/ResourceConflict: secrets belongs to the elder ring elder
                Balanced=Unknown/NotWorking: nothing of the ring is worked on yet
                Fenced=True/Active: former owners are refused
                Degraded=True/ResourceConflict: secrets belongs to the elder ring elder
            "#]],
        );
    }

    #[test]
    fn what_is_overdue_and_too_much_is_named() {
        let name = ObjectName {
            kind: GroupKind::new("", "Secret"),
            namespace: Some("shop".to_owned()),
            name: "a".to_owned(),
        };
        let traffic = Traffic {
            moving: 2,
            overdue: 2,
            overdue_example: Some(name.clone()),
            stuck: 1,
            stuck_example: Some(name),
            ..Traffic::default()
        };
        let traffic = Box::leak(Box::new(traffic));
        check(
            |facts| {
                (facts.traffic, facts.members, facts.slots) = (traffic, 17, Some(64));
                facts.fencing = &Fencing::Settling;
            },
            &expect![[r#"
                Ready=True/InstancesReady: 2 of 3 instances are ready
                Balanced=False/Moving: 2 objects are moving, 0 wait for an owner
                Fenced=False/Settling: the fence is installed and trusted soon
                Degraded=True/DrainOverdue: /Secret/shop/a, one of 2, is not given up and not safe to take; /Secret/shop/a, one of 1 of those who are gone, cannot be labelled; 17 instances share 64 slots
            "#]],
        );
    }

    #[test]
    fn a_condition_is_dated_when_it_changes() {
        let (traffic, at) = (Traffic::default(), |s| Timestamp::from_second(s).unwrap());
        let facts = |ready| Facts {
            problems: &[],
            fencing: &Fencing::Off,
            traffic: &traffic,
            is_working: true,
            instances: 1,
            ready,
            members: 1,
            slots: None,
            objects: None,
            imbalance: None,
            imbalance_max_percent: 5,
        };
        let first = conditions(&facts(1), Some(1), (&[], at(10)));
        let second = conditions(&facts(1), Some(2), (&first, at(20)));
        assert_eq!(second[0].last_transition_time.0, at(10));
        let third = conditions(&facts(0), Some(2), (&second, at(30)));
        assert_eq!(third[0].last_transition_time.0, at(30));
        assert_eq!(third[3].last_transition_time.0, at(10), "the others stand");
    }
}
