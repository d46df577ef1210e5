//! Without faults: who moves what, and what does not move.

use std::time::Duration;

use sharding::core::instance::Stop;
use sharding::core::names::InstanceId;

use super::world::{Happening, Party};
use super::{Fault, Plot, World};

const SETTLED: Duration = Duration::from_secs(100);

fn small(instances: usize) -> World {
    by_seed(7, instances)
}

fn by_seed(seed: u64, instances: usize) -> World {
    World::new(Plot {
        seed,
        instances,
        objects: 40,
        is_rough: false,
        is_fenced: false,
        fault: None,
    })
}

fn settle(world: &mut World) {
    world.run_until(SETTLED).expect("nothing goes wrong");
    world.history.check_settled(world.wall(), Duration::ZERO).expect("everything is at rest");
}

/// A cluster at rest.
fn settled(instances: usize) -> World {
    let mut world = small(instances);
    settle(&mut world);
    world
}

fn owners(world: &World) -> Vec<(String, usize)> {
    let owners = world.history.owners().into_iter();
    let named = owners.map(|(id, count)| (id.map_or("-".to_owned(), |id| id.to_string()), count));
    named.collect()
}

fn id(world: &World, number: usize) -> InstanceId {
    world.processes[number].id.clone()
}

#[test]
fn a_container_that_restarts_keeps_its_objects() {
    let mut world = small(3);
    world.processes[1].keeps_pod = true;
    settle(&mut world);
    let moves = world.history.moves();
    world.end_process(1).unwrap();
    world.run_until(SETTLED + Duration::from_secs(60)).unwrap();
    assert_eq!(world.history.moves(), moves);
    assert!(world.processes[1].is_up());
}

#[test]
fn a_rolling_update_with_holds_moves_nothing() {
    let mut world = settled(3);
    let moves = world.history.moves();
    for number in 0..3 {
        world.stop_process(number, Stop::Hold(Duration::from_secs(60))).unwrap();
        let end = world.now + Duration::from_secs(70);
        world.run_until(end).unwrap();
    }
    assert_eq!(world.history.moves(), moves);
    world.history.check_settled(world.wall(), Duration::ZERO).unwrap();
}

#[test]
fn what_is_released_goes_to_the_others_within_seconds() {
    let mut world = settled(3);
    world.processes[2].is_wanted = false;
    world.stop_process(2, Stop::Release).unwrap();
    let end = world.now + Duration::from_secs(20);
    world.run_until(end).unwrap();
    world.history.check_settled(world.wall(), Duration::ZERO).unwrap();
    let gone = id(&world, 2).to_string();
    assert!(owners(&world).iter().all(|(owner, _)| *owner != gone), "{:?}", owners(&world));
}

#[test]
fn the_objects_of_the_dead_are_taken_after_twice_the_duration() {
    let mut world = settled(3);
    world.processes[2].is_wanted = false;
    world.end_process(2).unwrap();
    let (dead, died) = (Some(id(&world, 2)), world.now);
    world.run_until(died + Duration::from_secs(26)).unwrap();
    assert!(world.history.owners().contains_key(&dead), "it may come back");
    world.run_until(died + Duration::from_secs(33)).unwrap();
    assert!(!world.history.owners().contains_key(&dead), "{:?}", owners(&world));
    world.history.check_settled(world.wall(), Duration::ZERO).unwrap();
}

#[test]
fn a_newcomer_gets_its_share_and_nobody_else_gets_anything() {
    let plot =
        Plot { seed: 9, instances: 4, objects: 60, is_rough: false, is_fenced: false, fault: None };
    let mut world = World::new(plot);
    world.processes[3].is_wanted = false;
    world.run_until(SETTLED).unwrap();
    let (before, moves) = (world.history.owners(), world.history.moves());
    world.processes[3].is_wanted = true;
    world.after(Duration::ZERO, Happening::Start(Party::Instance(3)));
    world.run_until(SETTLED + Duration::from_secs(40)).unwrap();
    let after = world.history.owners();
    let newcomer = after[&Some(id(&world, 3))];
    assert!(newcomer > 0);
    assert_eq!(world.history.moves() - moves, newcomer, "moves to the newcomer only");
    for (owner, count) in &before {
        assert!(after.get(owner).is_some_and(|now| now <= count), "{owner:?} got something");
    }
}

#[test]
fn an_instance_of_weight_nothing_is_emptied() {
    let mut world = settled(3);
    world.set_weight(0, Some("0".to_owned()));
    world.run_until(SETTLED + Duration::from_secs(40)).unwrap();
    assert!(!world.history.owners().contains_key(&Some(id(&world, 0))), "{:?}", owners(&world));
    world.history.check_settled(world.wall(), Duration::ZERO).unwrap();
}

#[test]
fn a_settled_sharder_remembers_nothing() {
    let world = settled(3);
    for sharder in &world.sharders {
        assert_eq!(sharder.engine().on_their_way(), 0);
    }
}

/// The sharder went round and round over what the last to leave had left, with nobody to take it.
#[test]
fn when_all_have_left_the_sharder_comes_to_rest() {
    for seed in 0..20 {
        let mut world = by_seed(seed, 3);
        settle(&mut world);
        for number in 0..3 {
            world.processes[number].is_wanted = false;
            let stop = if world.chance.below(3) == 0 {
                Stop::Hold(Duration::from_secs(4))
            } else {
                Stop::Release
            };
            world.stop_process(number, stop).unwrap();
            let end = world.now + world.chance.millis(0..2_000);
            world.run_until(end).unwrap();
        }
        let end = world.now + Duration::from_secs(60);
        world.run_until(end).unwrap();
        let pages = |world: &World| world.sharders.iter().map(|it| it.pages).sum::<usize>();
        let before = pages(&world);
        let end = world.now + Duration::from_secs(30);
        world.run_until(end).unwrap();
        assert!(pages(&world) - before <= 10, "seed {seed}: {} pages", pages(&world) - before);
    }
}

/// What the leaver had stayed with it: nobody could take it when it was looked at, and somebody could
/// a moment later.
#[test]
fn what_leavers_have_goes_to_the_one_who_stays() {
    for seed in 0..40 {
        let mut world = by_seed(seed, 3);
        settle(&mut world);
        world.processes[0].is_wanted = false;
        world.end_process(0).unwrap();
        let end = world.now + world.chance.millis(0..45_000);
        world.run_until(end).unwrap();
        world.processes[1].is_wanted = false;
        world.stop_process(1, Stop::Release).unwrap();
        let end = world.now + Duration::from_secs(60);
        world.run_until(end).unwrap();
        let all = [(id(&world, 2).to_string(), world.history.owners().values().sum())];
        assert_eq!(owners(&world), all, "seed {seed}");
    }
}

/// An object that was being assigned while the next instance joined stayed where it was until members
/// changed again.
#[test]
fn what_is_on_its_way_when_members_change_ends_where_it_belongs() {
    for seed in 0..20 {
        let mut world = by_seed(seed, 3);
        settle(&mut world);
        for number in 1..3 {
            world.processes[number].is_wanted = false;
            world.stop_process(number, Stop::Release).unwrap();
        }
        let end = world.now + Duration::from_secs(60);
        world.run_until(end).unwrap();
        for number in 1..3 {
            world.processes[number].is_wanted = true;
            world.after(Duration::ZERO, Happening::Start(Party::Instance(number)));
            let end = world.now + world.chance.millis(0..900);
            world.run_until(end).unwrap();
        }
        let end = world.now + Duration::from_secs(20);
        world.run_until(end).unwrap();
        let moves = world.history.moves();
        world.stop_process(0, Stop::Hold(Duration::from_secs(60))).unwrap();
        let end = world.now + Duration::from_secs(20);
        world.run_until(end).unwrap();
        assert_eq!(world.history.moves(), moves, "seed {seed}");
    }
}

/// How uneven the shares are when objects were counted twice, and there are enough of them that each
/// instance has 200.
pub(super) fn imbalance_at_last(fault: Option<Fault>) -> f64 {
    let plot =
        Plot { seed: 1, instances: 2, objects: 420, is_rough: false, is_fenced: false, fault };
    let mut world = World::new(plot);
    world.run_until(Duration::from_secs(65 * 60)).expect("nothing goes wrong");
    let ids: Vec<InstanceId> = (0..plot.instances).map(|number| id(&world, number)).collect();
    world.history.imbalance(&ids)
}

/// P3.
#[test]
fn nobody_has_much_more_than_the_others() {
    let imbalance = imbalance_at_last(None);
    assert!(imbalance <= 1.05, "{imbalance}");
}
