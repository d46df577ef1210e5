//! I7: while the record cannot be read, neither node nor record is written and no transaction is
//! lost, whatever happens. Once it is mended, everything that waited is worked off.

use labels::core::{
    keys::{QUARANTINED, SNAPSHOT},
    object::Document,
};

use chance::Chance;

use super::{
    Violation,
    life::{Life, Order},
};

/// Breaks the record in the middle of a life, or puts somebody else's ConfigMap in its place.
fn check(seed: u64, order: Order) -> Result<(), Violation> {
    let mut life = Life::new(Chance::new(seed), order, None);
    life.live_for(60)?;
    life.rest()?;
    let whole = life.cluster.record.clone();
    let broken = broken(whole.as_ref(), seed);
    life.cluster.record = Some(broken.clone());
    let patches = life.cluster.patches;
    life.live_for(60)?;
    life.post_everything();
    life.work_off_all()?;
    let is_untouched = life.cluster.record.as_ref() == Some(&broken);
    Violation::unless(is_untouched && life.cluster.patches == patches, || {
        "I7: something was written on a record that cannot be read".to_owned()
    })?;
    life.cluster.record = whole;
    for document in life.cluster.queue.values_mut() {
        document.labels.remove(QUARANTINED);
    }
    life.rest()?;
    match order {
        Order::AddedOvertakes => life.check_against_model(),
        Order::Permuted => Ok(()),
    }
}

fn broken(whole: Option<&Document>, seed: u64) -> Document {
    let mut broken = whole.cloned().unwrap_or_else(|| Document {
        name: super::cluster::NODE.to_owned(),
        rv: Some("foreign".to_owned()),
        ..Document::default()
    });
    if seed.is_multiple_of(2) {
        broken.labels.clear();
        broken.data = [("ca.crt".to_owned(), "x".to_owned())].into();
    } else {
        broken.data.insert(SNAPSHOT.to_owned(), "{".to_owned());
    }
    broken
}

#[test]
fn what_cannot_be_read_is_not_written() {
    for seed in super::SEEDS {
        for order in [Order::AddedOvertakes, Order::Permuted] {
            if let Err(Violation(what)) = check(seed, order) {
                panic!("seed {seed}, {order:?}: {what}");
            }
        }
    }
}
