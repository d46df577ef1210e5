//! The measurement of the autoscaler's planners runs, a hundredth of its size.

use bench::autoscaler;
use bench::fit::Scale;

#[test]
fn every_iteration_has_the_same_to_do() {
    let figures = autoscaler::run(Scale { divisor: 100 }).unwrap();
    let [first, second] = figures.as_slice() else { panic!("{figures:?}") };
    assert_eq!((first.nodes, first.increases), (second.nodes, second.increases));
    assert_eq!(first.unneeded, second.unneeded);
    assert!(autoscaler::table(&figures).contains("whole iteration"));
}
