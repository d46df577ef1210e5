//! The measurement of the autoscaler runs, a hundredth of its size.

use bench::autoscaler::{self, Options};

#[test]
fn every_iteration_has_the_same_to_do() {
    let mut told = Vec::new();
    let report = autoscaler::run(Options::quick(), &mut |words| told.push(words.to_owned()));
    let report = report.unwrap();
    let [first, second] = report.iterations.as_slice() else { panic!("{report}") };
    assert_eq!((first.nodes, first.increases), (second.nodes, second.increases));
    assert_eq!(first.unneeded, second.unneeded);
    assert_eq!((report.packings.len(), told.len()), (5, 3));
    let words = report.to_string();
    assert!(words.contains("two kinds of pods") && words.contains("`observe` alone"), "{words}");
}
