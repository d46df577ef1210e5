//! Whatever is read, nothing panics. Everything is drawn from few values, so that ids collide, times lie
//! on both sides of limits, and what was there is not.

use jiff::{SignedDuration, Timestamp};
use proptest::{collection::vec, option, prelude::*, sample::select};
use registry::{
    Action, Condition, ConditionStatus, Config, ErrorClass, ErrorInfo, Facts, Fault, Group,
    Instance, InstanceState, Membership, Node, Options, Outcome, Registry, Step as CallStep, Taint,
    Target,
};

use crate::scene::beginning;

/// What is read at a moment, and what is done about it.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) now: Timestamp,
    pub(super) facts: Facts,
    pub(super) outcomes: Vec<Outcome>,
}

proptest! {
    #[test]
    fn panic_nowhere(steps in life(), is_lost in any::<bool>()) {
        let config = Config::default();
        let mut registry =
            if is_lost { Registry::rebuild(config) } else { Registry::new(config) };
        for Step { now, facts, outcomes } in &steps {
            registry.observe(*now, facts);
            for outcome in outcomes {
                registry.record(*now, outcome).expect("there is room");
            }
            ask_everything(&registry, facts, *now);
            let restored = Registry::restore(Config::default(), &registry.save(), *now);
            prop_assert!(restored.is_ok() || *now < beginning());
        }
    }
}

fn ask_everything(registry: &Registry, facts: &Facts, now: Timestamp) {
    let status = registry.status(now);
    assert_eq!(status.node_groups.len(), registry.groups().count());
    let sizes = registry.autoscaled_sizes();
    assert!(usize::try_from(sizes.registered).expect("small") <= facts.nodes.len());
    assert!(registry.removable(now).len() <= facts.nodes.len());
    for node in &facts.nodes {
        assert!(registry.explain(&Target::Node(node.name.clone()), now).is_some());
    }
    for group in registry.groups() {
        assert!(registry.explain(&Target::Group(group.clone()), now).is_some());
        let is_safe = registry.is_safe_to_scale_up(group, now);
        assert_eq!(is_safe, registry.scale_up_refusals(group, now).is_empty());
    }
    for (instance, _) in registry.unregistered() {
        assert!(registry.explain(&Target::Instance(instance.clone()), now).is_some());
    }
}

fn group_id() -> impl Strategy<Value = &'static str> {
    select(vec!["a", "b", "c", ""])
}

fn machine() -> impl Strategy<Value = &'static str> {
    select(vec!["x/1", "x/2", "x/3", "y/1", "y/2", "4", ""])
}

fn time() -> impl Strategy<Value = Timestamp> {
    let minutes = select(vec![-1_440_i64, -60, -30, -20, -15, -1, 0, 1, 14, 15, 30, 600]);
    let usual = minutes.prop_map(|minutes| beginning() + SignedDuration::from_mins(minutes));
    prop_oneof![20 => usual, 1 => select(vec![Timestamp::MIN, Timestamp::MAX])]
}

fn condition() -> impl Strategy<Value = (String, Condition)> {
    let kinds = vec!["Ready", "Ready", "Ready", "DiskPressure", "NetworkUnavailable", "Suspended"];
    let status = vec![ConditionStatus::True, ConditionStatus::False, ConditionStatus::Unknown];
    (select(kinds), select(status), option::weighted(0.9, time())).prop_map(
        |(kind, status, last_transition)| (kind.to_owned(), Condition { status, last_transition }),
    )
}

fn taint() -> impl Strategy<Value = Taint> {
    let keys =
        select(vec!["ToBeDeletedByClusterAutoscaler", "node.kubernetes.io/not-ready", "other"]);
    let values = select(vec!["", "1772359200", "-5", "99999999999999999999"]);
    (keys, values).prop_map(|(key, value)| Taint { key: key.to_owned(), value: value.to_owned() })
}

fn membership() -> impl Strategy<Value = Membership> {
    prop_oneof![
        6 => group_id().prop_map(|group| Membership::Group(group.into())),
        1 => Just(Membership::Unmanaged),
        1 => Just(Membership::Unknown),
    ]
}

prop_compose! {
    fn node()(
        (name, provider_id, created) in (select(vec!["1", "2", "3", "4", "5"]), machine(), time()),
        (conditions, taints) in (vec(condition(), 0..3), vec(taint(), 0..2)),
        (zone, lacks, membership) in (option::of(select(vec!["n", "s"])), prop::bool::weighted(0.1), membership()),
    ) -> Node {
        let zone = zone.map(|zone| ("topology.kubernetes.io/zone".to_owned(), zone.to_owned()));
        Node {
            created,
            name: name.into(),
            provider_id: provider_id.to_owned(),
            conditions: conditions.into_iter().collect(),
            taints: taints.into_iter().collect(),
            labels: zone.into_iter().collect(),
            annotations: Default::default(),
            missing_resources: lacks.then(|| "gpu".to_owned()).into_iter().collect(),
            membership,
        }
    }
}

fn instance() -> impl Strategy<Value = Instance> {
    let state =
        select(vec![InstanceState::Running, InstanceState::Creating, InstanceState::Deleting]);
    let error = select(vec!["QUOTA", "STOCKOUT"]).prop_map(|code| ErrorInfo {
        class: ErrorClass::OutOfResources,
        code: code.to_owned(),
        message: String::new(),
    });
    (machine(), option::of(state), option::weighted(0.2, error))
        .prop_map(|(id, state, error)| Instance { id: id.into(), state, error })
}

fn size() -> impl Strategy<Value = i64> {
    prop_oneof![20 => 0_i64..6, 1 => select(vec![-1, i64::from(u32::MAX), i64::MAX, i64::MIN])]
}

fn option_value() -> impl Strategy<Value = Option<SignedDuration>> {
    option::of(select(vec![
        SignedDuration::ZERO,
        SignedDuration::from_mins(-1),
        SignedDuration::from_mins(2),
        SignedDuration::MAX,
    ]))
}

fn result<T: Clone + std::fmt::Debug>(
    good: impl Strategy<Value = T>,
) -> impl Strategy<Value = Result<T, Fault>> {
    prop_oneof![9 => good.prop_map(Ok), 1 => Just(Err(Fault("no".to_owned())))]
}

prop_compose! {
    fn group()(
        (id, min, max, exists) in (group_id(), size(), size(), prop::bool::weighted(0.9)),
        (unneeded, unready) in (option_value(), option_value()),
        (provision, startup) in (option_value(), option_value()),
        (target, instances) in (result(size()), result(vec(instance(), 0..4))),
    ) -> Group {
        let options = Options { unneeded, unready, provision, startup };
        let (min, max) = if max >= 0 { (min.min(max), max) } else { (min, max) };
        Group { id: id.into(), min, max, exists, options, target, instances }
    }
}

fn call_step() -> impl Strategy<Value = CallStep> {
    let failed = CallStep::Failed { message: "no".to_owned() };
    select(vec![CallStep::Requested, CallStep::Done, failed, CallStep::Unknown])
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let delta = || select(vec![0_u32, 1, 3, u32::MAX]);
    let action = prop_oneof![
        (group_id(), delta(), delta()).prop_map(|(group, delta, baseline)| Action::Increase {
            group: group.into(),
            delta,
            baseline
        }),
        (group_id(), delta())
            .prop_map(|(group, delta)| Action::Decrease { group: group.into(), delta }),
        (group_id(), machine()).prop_map(|(group, instance)| Action::Delete {
            group: group.into(),
            instance: instance.into()
        }),
    ];
    (action, call_step()).prop_map(|(action, step)| Outcome { action, step })
}

fn facts() -> impl Strategy<Value = Facts> {
    (vec(node(), 0..6), result(vec(group(), 0..4)))
        .prop_map(|(nodes, groups)| Facts { nodes, groups })
}

/// Moments mostly follow one another.
pub(super) fn life() -> impl Strategy<Value = Vec<Step>> {
    let after = select(vec![-60_i64, 0, 10, 10, 60, 300, 900, 3_600]);
    vec((after, facts(), vec(outcome(), 0..3)), 1..6).prop_map(|steps| {
        let mut now = beginning();
        let step = |(after, facts, outcomes)| {
            now += SignedDuration::from_secs(after);
            Step { now, facts, outcomes }
        };
        steps.into_iter().map(step).collect()
    })
}
