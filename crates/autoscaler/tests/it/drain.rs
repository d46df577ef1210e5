//! The removal of one node: there and back.

use std::time::Duration;

use autoscaler::core::{Command, Effect, End, Evicted, PodKey, Reply};
use registry::NodeName;

use crate::scene::Scene;

/// A node whose removal has begun, with these pods on it.
struct Removal {
    scene: Scene,
    node: NodeName,
}

impl Removal {
    fn new(pods: &str) -> Self {
        Self::of("", pods)
    }

    /// Of a node of which this is to be said besides.
    fn of(more: &str, pods: &str) -> Self {
        let mut scene = Scene::new(&format!(
            "{{groups: [{{id: a}}], nodes: [{{name: busy, group: a}}, {{name: n, group: a{more}}}], pods: [{{name: x, node: busy, cpu: 2500m, app: x}}{pods}]}}"
        ));
        let account = scene.run_for(Duration::from_mins(10));
        assert_eq!(account.removals.len(), 1, "{:?}", account.kept);
        Self { scene, node: "n".into() }
    }

    /// What is to be done after so many seconds.
    fn after(&mut self, seconds: u64) -> Vec<String> {
        self.scene.now += Duration::from_secs(seconds);
        let world = self.scene.world();
        let Scene { now, registry, memory, config, .. } = &mut self.scene;
        let (commands, ends) = memory.drains.step(*now, (&world, registry), config);
        let done = ends.iter().map(|end| format!("{end:?}"));
        let words = commands.iter().map(|command| match command {
            Command::Taint { cordons, .. } => format!("taint, cordon {cordons}"),
            Command::Evict { pod, grace_secs, .. } => format!("evict {pod} {grace_secs}s"),
            Command::Delete { .. } => "delete".to_owned(),
            Command::Lift(lift) => format!("lift: {}", lift.why),
        });
        words.chain(done).collect()
    }

    fn reply(&mut self, reply: Reply) -> Option<End> {
        let Scene { now, memory, config, .. } = &mut self.scene;
        memory.on_drain_reply((&self.node, reply), *now, config)
    }

    fn evicted(&mut self, pod: &str, outcome: Evicted) {
        let pod = PodKey { namespace: "default".to_owned(), name: pod.to_owned() };
        assert_eq!(self.reply(Reply::Evicted { pod, outcome }), None);
    }

    fn tainted(mut self) -> Self {
        assert_eq!(self.after(0), ["taint, cordon true"]);
        assert!(self.after(0).is_empty(), "not asked for twice");
        assert_eq!(self.reply(Reply::Tainted(Effect::Done)), None);
        assert!(self.after(4).is_empty(), "the delay is not over");
        self
    }

    fn leave(&mut self, pod: &str) {
        self.scene.words.pods.retain(|words| words.name != pod);
    }
}

const POD: &str = ", {name: p, node: n, cpu: 1, app: p}";

#[test]
fn an_empty_node_is_tainted_and_handed_over() {
    let mut removal = Removal::new("").tainted();
    assert_eq!(removal.after(1), ["delete"]);
    assert!(removal.after(60).is_empty(), "the answer is waited for");
    let end = removal.reply(Reply::Deleted(Effect::Done));
    assert!(matches!(end, Some(End::HandedOver { is_confirmed: true, .. })));
    assert!(removal.scene.memory.drains.is_empty());
}

#[test]
fn pods_are_asked_again_until_they_are_let_go() {
    let mut removal = Removal::new(POD).tainted();
    assert_eq!(removal.after(1), ["evict default/p 30s"]);
    assert!(removal.after(1).is_empty());
    removal.evicted("p", Evicted::Refused);
    assert!(removal.after(9).is_empty(), "not before ten seconds");
    assert_eq!(removal.after(1), ["evict default/p 30s"]);
    removal.evicted("p", Evicted::Accepted);
    assert!(removal.after(20).is_empty(), "it goes");
    removal.leave("p");
    assert_eq!(removal.after(1), ["delete"]);
}

#[test]
fn a_pod_that_is_not_let_go_in_time_takes_it_all_back() {
    let mut removal = Removal::new(POD).tainted();
    assert_eq!(removal.after(1).len(), 1);
    for _ in 0..11 {
        removal.evicted("p", Evicted::Refused);
        assert_eq!(removal.after(10).len(), 1);
    }
    removal.evicted("p", Evicted::Refused);
    assert_eq!(removal.after(10), ["lift: default/p could not be evicted in time"]);
    let end = removal.reply(Reply::Lifted(Effect::Done));
    assert!(matches!(end, Some(End::RolledBack { .. })));
    let account = removal.scene.run();
    assert!(account.cooldown.is_some(), "a failure is waited out");
}

#[test]
fn a_pod_that_does_not_go_takes_it_all_back() {
    let mut removal = Removal::new(POD).tainted();
    removal.after(1);
    removal.evicted("p", Evicted::Accepted);
    assert!(removal.after(59).is_empty());
    assert_eq!(removal.after(1), ["lift: default/p did not go in time"]);
    assert_eq!(removal.reply(Reply::Lifted(Effect::Failed("no".to_owned()))), None);
    assert_eq!(removal.after(1), ["lift: default/p did not go in time"], "tried again");
}

/// Nobody ends pods on a machine that is lost. Every first removal of one was taken back after a minute,
/// since it takes longer than that until such a pod is known to be stuck.
#[test]
fn a_pod_that_does_not_go_goes_with_a_node_that_is_lost() {
    let mut removal =
        Removal::of(", unready: 10", &format!("{POD}, {{name: q, node: n, cpu: 100m, app: p}}"))
            .tainted();
    assert_eq!(removal.after(1), ["evict default/p 30s", "evict default/q 30s"]);
    removal.evicted("p", Evicted::Accepted);
    removal.evicted("q", Evicted::Refused);
    assert_eq!(removal.after(10), ["evict default/q 30s"]);
    removal.evicted("q", Evicted::Accepted);
    assert!(removal.after(50).is_empty(), "the other one still has time");
    assert_eq!(removal.after(10), ["delete"]);
}

/// Nobody had asked whether it is in use, or whether its pods have room elsewhere; it went all the same.
#[test]
fn a_node_that_is_ready_again_stays() {
    let mut removal = Removal::of(", unready: 10", POD).tainted();
    assert_eq!(removal.after(1), ["evict default/p 30s"]);
    removal.scene.words.nodes[1].unready = None;
    removal.scene.run();
    assert_eq!(removal.after(1), ["lift: it is Ready again"]);
}

/// It was due again after every cooldown, before all others, and no other drain had its turn.
#[test]
fn a_lost_node_whose_pods_are_not_let_go_is_not_tried_again_at_once() {
    let mut removal = Removal::of(", unready: 10", POD).tainted();
    removal.after(1);
    for _ in 0..12 {
        removal.evicted("p", Evicted::Refused);
        removal.after(10);
    }
    assert!(removal.reply(Reply::Lifted(Effect::Done)).is_some());
    let failed = removal.scene.now;
    removal.scene.now = failed + Duration::from_mins(4);
    let account = removal.scene.run();
    assert_eq!((account.cooldown, account.removals.len()), (None, 0));
    assert_eq!(
        account.kept["n"].to_string(),
        "RecentlyUnremovable: UnexpectedError: default/p could not be evicted in time; looked at again at 08:17:05"
    );
    removal.scene.now = failed + Duration::from_mins(5);
    assert_eq!(removal.scene.run().removals.len(), 1);
}

#[test]
fn what_comes_meanwhile_may_keep_the_node() {
    let mut removal = Removal::new("").tainted();
    let late = serde_saphyr::from_str("{name: late, node: n, cpu: 1, app: p}").unwrap();
    removal.scene.words.pods.push(late);
    assert_eq!(removal.after(1), ["lift: default/late came to it"]);

    let mut removal = Removal::new(POD).tainted();
    let blocking = serde_saphyr::from_str("{name: late, node: n, cpu: 1}").unwrap();
    removal.scene.words.pods.push(blocking);
    assert_eq!(removal.after(1), ["lift: default/late blocks it: NotReplicated"]);
}

#[test]
fn the_providers_word_ends_it() {
    let mut refused = Removal::new("").tainted();
    refused.after(1);
    assert_eq!(refused.reply(Reply::Deleted(Effect::Failed("quota".to_owned()))), None);
    assert_eq!(refused.after(1), ["lift: quota"]);
    let mut silent = Removal::new("").tainted();
    silent.after(1);
    let end = silent.reply(Reply::Deleted(Effect::Unknown));
    assert!(
        matches!(end, Some(End::HandedOver { is_confirmed: false, .. })),
        "the registry finds out, and nobody counts it as removed"
    );
    let mut stale = Removal::new("").tainted();
    stale.after(1);
    assert_eq!(stale.reply(Reply::Deleted(Effect::Stale)), None);
    assert_eq!(stale.after(1), ["lift: its group has changed meanwhile"]);
}

#[test]
fn what_is_postponed_is_asked_for_again() {
    let mut removal = Removal::new("").tainted();
    assert_eq!(removal.after(1), ["delete"]);
    assert_eq!(removal.reply(Reply::Postponed), None);
    assert!(removal.after(4).is_empty(), "pods may have come");
    assert_eq!(removal.after(1), ["delete"]);
}

#[test]
fn daemons_are_asked_once_and_not_waited_for() {
    let daemon = ", {name: d, node: n, cpu: 100m, app: d, kind: DaemonSet}";
    let mut removal = Removal::new(&format!("{POD}{daemon}")).tainted();
    assert_eq!(removal.after(1), ["evict default/p 30s", "evict default/d 30s"]);
    removal.evicted("p", Evicted::Accepted);
    removal.leave("p");
    assert_eq!(removal.after(1), ["delete"]);
    let mut empty = Removal::new(daemon).tainted();
    assert_eq!(empty.after(1), ["delete"], "an empty node is not worth the wait");
}

#[test]
fn a_taint_that_cannot_be_written_is_taken_back() {
    let mut removal = Removal::new("");
    removal.after(0);
    assert_eq!(removal.reply(Reply::Tainted(Effect::Unknown)), None);
    assert_eq!(removal.after(0), ["lift: it could not be tainted: Unknown"]);
}

#[test]
fn a_node_that_is_gone_needs_no_more() {
    let mut removal = Removal::new("").tainted();
    removal.scene.words.nodes.pop();
    let told = removal.after(1);
    assert!(told[0].starts_with("Vanished"), "{told:?}");
    assert!(removal.scene.memory.drains.is_empty());
}
