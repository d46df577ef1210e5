//! Who loses a race learns that it did, and changes nothing; who does not know asks again.

use tasks::core::keys::Key;
use tasks::core::record::Record;
use tasks::core::transition::{
    Batch, BatchOutcome, ConcurrentTaskModErr, Plan, SettleError, Settled, claim, finish,
};
use tasks::core::txn::Op;

use crate::scene::{Scene, exited, spec};

#[test]
fn stale_update_gives_concurrent_task_mod_err() {
    const RACERS: u32 = 50;
    let mut scene = Scene::new();
    let queued = scene.submit(spec());
    let racers: Vec<Plan> = (1..=RACERS)
        .map(|number| {
            let by = scene.register(number);
            claim(&queued, &by, scene.stamp()).unwrap()
        })
        .collect();

    let before = queued.clone();
    let settled: Vec<Settled> = racers.iter().map(|plan| scene.store.settle(plan)).collect();
    let mut won = settled.iter().filter(|settled| matches!(settled, Settled::Won(_)));
    let winner = won.next();
    let Some(Settled::Won(Some(winner))) = winner else { panic!("somebody wins: {winner:?}") };
    assert_eq!(won.count(), 0, "nobody else wins");

    for settled in &settled {
        let Settled::Lost(lost) = settled else { continue };
        assert_eq!(lost.error, ConcurrentTaskModErr { id: queued.id() });
        assert_eq!(lost.found.as_ref(), Some(&**winner), "the loser sees who was first");
        assert!(!lost.is_fenced);
    }
    assert_eq!(queued, before, "a loser's task is what it was");
    assert_eq!(scene.store.record(queued.id()).as_ref(), Some(&**winner));
    scene.assert_in_sync();
}

/// The connection broke after the store had done it: the same transaction answers `false`, and the
/// write id in the task tells that it was ours.
#[test]
fn an_unknown_outcome_is_settled_by_the_same_transaction() {
    let mut scene = Scene::new();
    let by = scene.register(1);
    let queued = scene.submit(spec());
    let plan = claim(&queued, &by, scene.stamp()).unwrap();
    let first = scene.store.settle(&plan);
    let revision = scene.store.revision();
    for _ in 0..3 {
        assert_eq!(scene.store.settle(&plan), first);
    }
    assert_eq!(scene.store.revision(), revision, "sending again writes nothing");
}

#[test]
fn a_claimant_without_its_key_is_told_so() {
    let mut scene = Scene::new();
    let by = scene.register(1);
    let queued = scene.submit(spec());
    scene.lose(1);
    let plan = claim(&queued, &by, scene.stamp()).unwrap();
    let Settled::Lost(lost) = scene.store.settle(&plan) else { panic!("a lost node claims") };
    assert!(lost.is_fenced);
    assert_eq!(lost.found, Some(queued));
}

#[test]
fn claims_in_one_request_have_their_own_results() {
    let mut scene = Scene::new();
    let (mine, other) = (scene.register(1), scene.register(2));
    let queued: Vec<Record> = (0..3).map(|_| scene.submit(spec())).collect();
    let plans: Vec<Plan> =
        queued.iter().map(|task| claim(task, &mine, scene.stamp()).unwrap()).collect();
    scene.claim(&queued[1], &other);

    let batch = Batch::of_claims(plans, &mine);
    let answer = scene.store.txn(&batch.txn);
    let BatchOutcome::Settled(settled) = batch.settle(&answer) else { panic!("fenced") };
    let is_won = |settled: &Result<_, _>| matches!(settled, Ok(Settled::Won(_)));
    assert_eq!(settled.iter().map(is_won).collect::<Vec<_>>(), [true, false, true]);
    scene.assert_in_sync();

    // The same request again: what was ours stays ours.
    let answer = scene.store.txn(&batch.txn);
    assert_eq!(batch.settle(&answer), BatchOutcome::Settled(settled));

    scene.lose(1);
    let answer = scene.store.txn(&batch.txn);
    assert_eq!(batch.settle(&answer), BatchOutcome::Fenced);
}

/// A record that nobody can read costs its own claim alone.
#[test]
fn an_unreadable_task_is_nothing_to_the_others_of_its_request() {
    let mut scene = Scene::new();
    let mine = scene.register(1);
    let queued: Vec<Record> = (0..3).map(|_| scene.submit(spec())).collect();
    let plans: Vec<Plan> =
        queued.iter().map(|task| claim(task, &mine, scene.stamp()).unwrap()).collect();
    let garbage = bytes::Bytes::from_static(b"garbage");
    scene.store.meddle(vec![Op::Put(Key::Task(queued[1].id()), garbage)]);

    let batch = Batch::of_claims(plans, &mine);
    let answer = scene.store.txn(&batch.txn);
    let BatchOutcome::Settled(settled) = batch.settle(&answer) else { panic!("fenced") };
    let [first, unreadable, last] = settled.as_slice() else { panic!("{settled:?}") };
    assert!(matches!(unreadable, Err(SettleError::Found(_))), "{unreadable:?}");
    for won in [first, last] {
        assert!(matches!(won, Ok(Settled::Won(Some(_)))), "{won:?}");
    }
}

#[test]
fn a_hundred_tasks_fit_into_one_request() {
    let mut scene = Scene::new();
    let plans: Vec<Plan> = (0..250).map(|_| scene.plan_submit(spec())).collect();
    let batches = Batch::split(plans);
    assert_eq!(batches.iter().map(|batch| batch.plans.len()).collect::<Vec<_>>(), [100, 100, 50]);
    for batch in &batches {
        let answer = scene.store.txn(&batch.txn);
        let BatchOutcome::Settled(settled) = batch.settle(&answer) else { panic!("fenced") };
        assert!(settled.iter().all(|settled| matches!(settled, Ok(Settled::Won(Some(_))))));
    }
    scene.assert_in_sync();
}

#[test]
fn large_tasks_are_spread_over_requests_by_their_bytes() {
    let mut scene = Scene::new();
    let large = tasks::wire::TaskSpec { stdin: vec![0; 16 << 10].into(), ..spec() };
    let plans: Vec<Plan> = (0..80).map(|_| scene.plan_submit(large.clone())).collect();
    let batches = Batch::split(plans);
    assert_eq!(batches.iter().map(|batch| batch.plans.len()).collect::<Vec<_>>(), [63, 17]);
}

/// The owner learns the end of its task from the store, not from its own belief.
#[test]
fn a_stale_owner_cannot_complete() {
    let mut scene = Scene::new();
    let first = scene.register(1);
    let queued = scene.submit(crate::scene::flagged());
    let mine = scene.claim(&queued, &first);
    let stale = finish(&mine, &scene.end(&mine, exited(0)), scene.stamp()).unwrap();

    scene.lose(1);
    let requeued = tasks::core::transition::requeue(&mine, scene.stamp()).unwrap();
    let requeued = scene.store.win(&requeued);
    let second = scene.register(2);
    let theirs = scene.claim(&requeued, &second);
    let fences = [&mine, &theirs].map(|task| task.task.last_attempt().unwrap().fence);
    assert!(fences[0] < fences[1], "fences grow");

    let Settled::Lost(lost) = scene.store.settle(&stale) else { panic!("a stale owner completed") };
    assert_eq!(lost.found, Some(theirs));
}
