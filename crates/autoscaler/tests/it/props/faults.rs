//! A fault in one group leaves what is decided on the others as it is, in every iteration.

use std::collections::BTreeSet;
use std::sync::Arc;

use autoscaler::core::{Account, Action, Effect, PodVerdict};
use chance::Chance;

use super::{cluster, worlds};
use crate::scene::Scene;

/// What says where a node belongs, so that no pod may do in another group.
const POOL: &str = "pool";

/// Iterations, one every ten seconds: as long as until unneeded nodes go.
const ITERATIONS: usize = 62;

#[test]
fn a_fault_in_one_group_leaves_the_others_decisions() {
    let mut decided = BTreeSet::new();
    let counted = std::cell::RefCell::new(&mut decided);
    worlds(|calm, seed| {
        let mut rough = Scene::new(&cluster(&mut Chance::new(seed)));
        rough.seed = seed;
        let struck = rough.words.groups[0].id.clone();
        keep_apart(calm, &struck);
        keep_apart(&mut rough, &struck);
        // From the beginning, or only then.
        let from = if seed % 2 == 0 { 0 } else { 20 };
        for at in 0..ITERATIONS {
            rough.words.groups[0].fault = at >= from;
            let (one, other) = (told(calm, &struck), told(&mut rough, &struck));
            assert_eq!(one, other, "seed {seed}, iteration {at}");
            counted.borrow_mut().insert(one);
            calm.now += std::time::Duration::from_secs(10);
            rough.now = calm.now;
        }
    });
    assert!(decided.len() > 100, "only {} different decisions", decided.len());
}

/// Iterations, one every ten seconds: long enough for what is missing to be given up, with the time that
/// is given here.
const REFUSED_ITERATIONS: usize = 30;

/// Beside one whose sizes cannot be read, so of which nothing is asked, the same is decided on others as
/// beside one of which much is asked in vain.
#[test]
fn calls_of_one_group_that_come_to_nothing_leave_the_others_decisions() {
    let effects = [Effect::Unknown, Effect::Failed("refused".to_owned())];
    let mut asked = 0;
    let counted = std::cell::RefCell::new(&mut asked);
    worlds(|calm, seed| {
        let mut rough = Scene::new(&cluster(&mut Chance::new(seed)));
        rough.seed = seed;
        let struck = rough.words.groups[0].id.clone();
        for scene in [&mut *calm, &mut rough] {
            keep_apart(scene, &struck);
            let mut rules = registry::Config::default();
            rules.times.provision = std::time::Duration::from_mins(1);
            scene.registry = registry::Registry::new(rules);
            // Others have the size that they should have: a target that is lowered ends an iteration.
            scene.words.groups.iter_mut().for_each(|group| group.target = None);
        }
        calm.words.groups[0].fault = true;
        rough.words.groups[0].target = Some(20);
        let effect = &effects[usize::try_from(seed).unwrap() % effects.len()];
        rough.struck = Some((struck.clone(), effect.clone()));
        for at in 0..REFUSED_ITERATIONS {
            let (one, other) = (told(calm, &struck), told(&mut rough, &struck));
            assert_eq!(one, other, "seed {seed}, iteration {at}");
            let calls = rough.calls();
            let of_struck = calls.iter().filter(|call| call.group().as_str() == struck);
            **counted.borrow_mut() += of_struck.count();
            calm.now += std::time::Duration::from_secs(10);
            rough.now = calm.now;
        }
    });
    assert!(asked > 100, "asked {asked} times");
}

/// Every pod belongs to a group, by its selector, and nothing is shared between groups: neither budgets
/// nor limits. Pods that wait for the group that is struck are left out, as they are its own.
fn keep_apart(scene: &mut Scene, struck: &str) {
    let scale_down = &mut scene.config.scale_down;
    (scale_down.parallelism_max, scale_down.drain_parallelism_max) = (100, 100);
    scale_down.soft_taints_max = 100;
    let words = &mut scene.words;
    for group in &mut words.groups {
        group.labels.insert(POOL.to_owned(), group.id.clone());
    }
    for node in &mut words.nodes {
        let pool = node.group.clone().unwrap_or_else(|| "none".to_owned());
        node.labels.insert(POOL.to_owned(), pool);
    }
    let pools: Vec<String> = words.groups.iter().map(|group| group.id.clone()).collect();
    let budgets = std::mem::take(&mut words.budgets);
    for pool in &pools {
        let of_pool = budgets.iter().map(|(app, allowed)| (format!("{app}-{pool}"), *allowed));
        words.budgets.extend(of_pool);
    }
    let mut waiting = pools.iter().cycle();
    for pod in &mut words.pods {
        let node = words.nodes.iter().find(|node| Some(&node.name) == pod.node.as_ref());
        let pool = match node {
            Some(node) => node.labels[POOL].clone(),
            None => waiting.next().expect("there is a group").clone(),
        };
        pod.app = pod.app.take().map(|app| format!("{app}-{pool}"));
        pod.spec.node_selector.get_or_insert_default().insert(POOL.to_owned(), pool);
    }
    words.pods.retain(|pod| {
        let pool = pod.spec.node_selector.as_ref().and_then(|selector| selector.get(POOL));
        pod.node.is_some() || pool.is_some_and(|pool| pool != struck)
    });
}

/// All that an iteration wants and says of other groups.
fn told(scene: &mut Scene, struck: &str) -> String {
    let account = scene.run();
    let of_struck = |node: &str| {
        let mut nodes = scene.words.nodes.iter();
        nodes.any(|it| it.name == node && it.group.as_deref() == Some(struck))
    };
    let actions: Vec<&Action> = scene
        .actions
        .iter()
        .filter(|action| match action {
            Action::Call(call) => call.group().as_str() != struck,
            Action::Lift(lift) => !of_struck(lift.node.as_str()),
            Action::Mark { node, .. } | Action::Unmark { node } => !of_struck(node.as_str()),
        })
        .collect();
    let Account { groups, pods, unneeded, kept, removals, .. } = account;
    let groups: Vec<_> = groups.iter().filter(|(group, _)| group.as_str() != struck).collect();
    let pods: Vec<_> =
        pods.into_iter().map(|(pod, verdict)| (pod, without(verdict, struck))).collect();
    let unneeded: Vec<_> = unneeded.iter().filter(|node| !of_struck(node.as_str())).collect();
    let kept: Vec<_> = kept.iter().filter(|(node, _)| !of_struck(node.as_str())).collect();
    let removals: Vec<_> = removals.iter().filter(|order| order.group.as_str() != struck).collect();
    format!("{actions:?}\n{groups:?}\n{pods:?}\n{unneeded:?}\n{kept:?}\n{removals:?}")
}

fn without(verdict: PodVerdict, struck: &str) -> PodVerdict {
    match verdict {
        PodVerdict::Refused(refusals) => {
            let others = refusals.iter().filter(|(group, _)| group.as_str() != struck);
            let others = others.map(|(group, words)| (group.clone(), words.clone()));
            PodVerdict::Refused(Arc::new(others.collect()))
        }
        verdict => verdict,
    }
}
