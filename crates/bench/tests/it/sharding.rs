//! What of sharding can be measured without a cluster: how even tables come out.

use bench::sharding::simulated;

#[test]
fn slots_reach_their_target_and_the_ring_does_not() {
    let all = simulated(&[5, 10]).unwrap();
    let told: Vec<_> = all.iter().map(|it| (it.instances, it.way.starts_with("slots"))).collect();
    assert_eq!(told, [(5, true), (5, false), (10, true), (10, false)]);
    for pair in all.chunks(2) {
        let [slots, ring] = pair else { panic!("both partitions: {pair:?}") };
        assert!(slots.max_over_mean <= 1.05, "{slots:?}");
        assert!(ring.max_over_mean > slots.max_over_mean, "{ring:?} {slots:?}");
    }
}
