//! Placing pods, a hundredth of life.

use bench::fit::{self, Scale};

#[test]
fn every_row_places_what_it_should() {
    let figures = fit::run(Scale { divisor: 100 }).unwrap();
    let counts: Vec<_> =
        figures.iter().map(|figure| (figure.pods, figure.new_nodes, figure.left)).collect();
    assert_eq!(counts, [(510, 26, 0), (500, 6, 0), (120, 0, 120), (50, 50, 0), (1000, 100, 0)]);
}
