//! What holds of any cluster, seeded.

mod faults;
mod generated;
mod places;

use std::collections::BTreeMap;

use autoscaler::core::{Action, Call, Effect, Ending, PodKey, PodVerdict};
use chance::Chance;

use crate::scene::Scene;
use generated::cluster;

/// How many clusters each property is tried on.
const WORLDS: u64 = 60;

fn worlds(holds: impl Fn(&mut Scene, u64)) {
    for seed in 0..WORLDS {
        let yaml = cluster(&mut Chance::new(seed));
        let mut scene = Scene::new(&yaml);
        scene.seed = seed;
        holds(&mut scene, seed);
    }
}

/// All that an iteration says and wants.
fn outcome(scene: &mut Scene) -> String {
    let account = scene.run();
    format!("{:?}\n{account:?}\n{:?}", scene.actions, scene.registry.save())
}

#[test]
fn the_order_of_listing_does_not_matter() {
    worlds(|scene, seed| {
        let mut turned = Scene::new(&cluster(&mut Chance::new(seed)));
        turned.seed = seed;
        turned.words.nodes.reverse();
        turned.words.pods.reverse();
        turned.words.groups.reverse();
        for _ in 0..3 {
            assert_eq!(outcome(scene), outcome(&mut turned), "seed {seed}");
            scene.now += std::time::Duration::from_mins(6);
            turned.now = scene.now;
        }
    });
}

#[test]
fn the_same_is_decided_twice_from_the_same() {
    worlds(|scene, seed| {
        let mut again = Scene::new(&cluster(&mut Chance::new(seed)));
        again.seed = seed;
        assert_eq!(outcome(scene), outcome(&mut again), "seed {seed}");
    });
}

#[test]
fn a_group_changes_once_and_within_its_limits() {
    worlds(|scene, seed| {
        for _ in 0..4 {
            scene.run();
            let mut changes: BTreeMap<&str, usize> = BTreeMap::new();
            for call in scene.calls() {
                *changes.entry(call.group().as_str()).or_default() += 1;
                let words = scene.words.groups.iter().find(|it| it.id == call.group().0).unwrap();
                if let Call::Increase { delta, target, .. } = call {
                    let size = i64::from(*target) + i64::from(*delta);
                    assert!(size <= words.max, "seed {seed}: {call:?}");
                }
                if let Call::Decrease { delta, floor, .. } = call {
                    let of_group = scene.words.nodes.iter();
                    let nodes = of_group.filter(|it| it.group.as_ref() == Some(&words.id)).count();
                    assert_eq!(usize::try_from(*floor).unwrap(), nodes, "seed {seed}");
                    assert!(*delta > 0);
                }
            }
            assert!(changes.values().all(|count| *count == 1), "seed {seed}: {changes:?}");
            scene.now += std::time::Duration::from_mins(8);
        }
    });
}

#[test]
fn what_was_asked_for_is_not_asked_for_again() {
    worlds(|scene, seed| {
        let first = scene.run();
        let Some(plan) = first.scale_up.clone() else { return };
        for increase in &plan.increases {
            let group = scene.words.groups.iter_mut().find(|it| it.id == increase.group.0).unwrap();
            let action = registry::Action::Increase {
                group: increase.group.clone(),
                delta: increase.delta,
                baseline: increase.target,
            };
            group.target = Some(i64::from(increase.target + increase.delta));
            for step in [registry::Step::Requested, registry::Step::Done] {
                let outcome = registry::Outcome { action: action.clone(), step };
                scene.registry.record(scene.now, &outcome).unwrap();
            }
        }
        scene.now += std::time::Duration::from_secs(10);
        let second = scene.run();
        let is_seated = |verdict: Option<&PodVerdict>| {
            matches!(verdict, Some(PodVerdict::FitsUpcoming { .. } | PodVerdict::FitsNode))
        };
        // A pod that is spread may find a place only once others have theirs, and then takes it first.
        let newcomers = second.pods.iter().filter(|(pod, verdict)| {
            let had_none = !plan.pods.contains(*pod) && !is_seated(first.pods.get(*pod));
            had_none && is_spread(scene, pod) && is_seated(Some(*verdict))
        });
        let has_newcomer = newcomers.count() > 0;
        for pod in &plan.pods {
            assert!(
                is_seated(second.pods.get(pod)) || has_newcomer,
                "seed {seed}: {pod} {:?}\nfirst {plan:?}\nthen {:?}\n{}",
                second.pods.get(pod),
                second.groups,
                cluster(&mut Chance::new(seed))
            );
        }
    });
}

fn is_spread(scene: &Scene, pod: &PodKey) -> bool {
    let words = scene.words.pods.iter().find(|words| words.name == pod.name);
    words.is_some_and(|words| words.spec.topology_spread_constraints.is_some())
}

#[test]
fn whatever_calls_come_to_nothing_breaks() {
    let effects =
        [Effect::Done, Effect::Unknown, Effect::Stale, Effect::Failed("refused".to_owned())];
    worlds(|scene, seed| {
        for (effect, step) in effects.iter().zip(0u64..) {
            scene.effect = effect.clone();
            scene.now += std::time::Duration::from_mins(seed % 7 + step);
            let account = scene.run();
            assert!(account.ending.is_some());
            let marks = scene.actions.iter().filter(|it| matches!(it, Action::Mark { .. }));
            assert!(marks.count() <= 10);
        }
    });
}

/// A decrease without an answer was the end of every iteration, and no group grew any more.
#[test]
fn whatever_the_calls_of_one_group_come_to_another_one_grows() {
    let effects = [Effect::Unknown, Effect::Stale, Effect::Failed("refused".to_owned())];
    let (mut grown, mut struck) = (0, 0);
    let counts = std::cell::RefCell::new((&mut grown, &mut struck));
    worlds(|scene, seed| {
        let first = add_group(scene);
        scene.run();
        // What is missing for so long is given up.
        scene.now += std::time::Duration::from_mins(16);
        for (effect, step) in effects.iter().zip(0u64..) {
            scene.struck = Some((first.clone(), effect.clone()));
            scene.now += std::time::Duration::from_mins(seed % 7 + step);
            let account = scene.run();
            let calls = scene.calls();
            let is_growing = |call: &&&Call| matches!(call, Call::Increase { group, .. } if group.as_str() == "fine");
            let is_grown = calls.iter().filter(is_growing).count() == 1;
            let is_halted = matches!(account.ending, Some(Ending::Unhealthy(_)));
            assert!(is_grown || is_halted, "seed {seed}, {effect:?}: {account:?}");
            let mut counts = counts.borrow_mut();
            *counts.0 += usize::from(is_grown);
            *counts.1 += calls.iter().filter(|call| call.group().as_str() == first).count();
        }
    });
    assert!(grown > 100 && struck > 10, "grown {grown} times, struck {struck} times");
}

/// A group beside those of the cluster, and a pod that fits no other. Of the cluster's groups only the
/// first, which is returned, may have a wrong size; and what waits for one of them is left out, since one
/// group grows at a time.
fn add_group(scene: &mut Scene) -> String {
    let words = &mut scene.words;
    words.groups.iter_mut().skip(1).for_each(|group| group.target = None);
    words.pods.retain(|pod| pod.node.is_some());
    let group = "{id: fine, labels: {only: fine}, new: {}}";
    words.groups.push(serde_saphyr::from_str(group).unwrap());
    let pod =
        "{name: waits, cpu: 1, app: app0, spec: {containers: [], nodeSelector: {only: fine}}}";
    words.pods.push(serde_saphyr::from_str(pod).unwrap());
    words.groups[0].id.clone()
}
