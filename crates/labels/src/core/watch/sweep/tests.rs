use super::*;
use crate::core::watch::notation::{rv, saved, show_all, uid};

struct World {
    checkpoints: Checkpoints,
    alive: BTreeSet<Uid>,
    stored: BTreeSet<Uid>,
    index: Index,
}

impl World {
    /// Checkpoints of `a` (u1, gone), `b` (u2, alive) and `c` (u3, gone).
    fn new() -> Self {
        let mut checkpoints = Checkpoints::new(Duration::from_secs(5));
        checkpoints.on_listed(["a u1 5", "b u2 6", "c u3 7"].map(saved).to_vec());
        let (alive, stored) = ([uid("u2")].into(), BTreeSet::new());
        Self { checkpoints, alive, stored, index: Index::default() }
    }

    fn sweep(
        &self,
        sweep: &mut Sweep,
        mine: impl Fn(&NodeHash) -> bool,
    ) -> (Vec<String>, Vec<String>) {
        let Self { checkpoints, alive, stored, index } = self;
        let position = &rv("8");
        let plan = sweep.plan(&Findings { checkpoints, alive, position, stored, index }, mine);
        let mut posts = show_all(&plan.posts);
        posts.sort();
        (posts, plan.removals.into_iter().map(|saved| saved.meta.node).collect())
    }
}

fn start() -> Instant {
    tokio::time::Instant::now().into_std()
}

fn none() -> Vec<String> {
    Vec::new()
}

#[test]
fn checkpoints_of_the_dead_are_told_and_then_removed() {
    let (world, mut sweep) = (World::new(), Sweep::new(start()));
    let told = ["deleted u1 (checkpoint)", "deleted u3 (checkpoint)"].map(str::to_owned);
    assert_eq!(world.sweep(&mut sweep, |_| true), (told.to_vec(), none()));
    assert_eq!(sweep.on_told(&uid("u1")), Some(NodeHash::of("a")));
    assert_eq!(sweep.on_told(&uid("u1")), None);
    assert_eq!(sweep.on_told(&uid("u2")), None);
}

#[test]
fn what_was_told_already_is_only_removed() {
    let mut world = World::new();
    world.stored.insert(uid("u1"));
    world.index.on_recovered(uid("u3"));
    let mut sweep = Sweep::new(start());
    let (posts, mut removals) = world.sweep(&mut sweep, |_| true);
    removals.sort();
    assert_eq!((posts, removals), (none(), vec!["a".to_owned(), "c".to_owned()]));
}

#[test]
fn who_was_born_after_the_list_is_not_taken_for_dead() {
    let mut world = World::new();
    world.checkpoints.on_listed(vec![saved("d u4 9")]);
    assert_eq!(world.sweep(&mut Sweep::new(start()), |_| true), (none(), none()));
    world.checkpoints.on_listed(vec![saved("d u4 8")]);
    let told = vec!["deleted u4 (checkpoint)".to_owned()];
    assert_eq!(world.sweep(&mut Sweep::new(start()), |_| true), (told, none()));
}

#[test]
fn everybody_looks_after_their_own() {
    let (world, mut sweep) = (World::new(), Sweep::new(start()));
    let a = NodeHash::of("a");
    let told = vec!["deleted u1 (checkpoint)".to_owned()];
    assert_eq!(world.sweep(&mut sweep, |node| *node == a), (told, none()));
}

#[test]
fn a_cluster_without_nodes_is_not_believed() {
    let mut world = World::new();
    world.alive.clear();
    assert_eq!(world.sweep(&mut Sweep::new(start()), |_| true), (none(), none()));
}

#[test]
fn the_first_look_comes_soon_and_the_others_hourly() {
    let now = start();
    let mut sweep = Sweep::new(now);
    let at = |seconds| now + Duration::from_secs(seconds);
    assert!(!sweep.is_due(at(59)) && sweep.is_due(at(60)));
    sweep.on_begun(at(70));
    assert!(!sweep.is_due(at(3_669)) && sweep.is_due(at(3_670)));
}
