//! A crash after every command: one life, once for each place at which its processor can die.

use expect_test::expect;
use labels::core::object::{Labels, Uid};

use super::{
    cluster::Cluster,
    processor::{Deeds, Processor},
};

/// Three incarnations with edits, worked off by a processor that dies after its step number
/// `crash_at`; what is stored and what the node has at the end.
fn live(crash_at: Option<usize>) -> (String, usize) {
    let (mut cluster, mut deeds) = (Cluster::default(), Deeds::default());
    let mut steps = 0;
    for incarnation in 1..=3 {
        let born: Labels = [("born".to_owned(), incarnation.to_string())].into();
        cluster.bear(Uid(format!("u{incarnation}")), born);
        steps = work_off(&mut cluster, &mut deeds, crash_at, steps);
        if incarnation == 3 {
            break;
        }
        let key = format!("edit{incarnation}");
        cluster.edit(|node| drop(node.labels.insert(key, "x".to_owned())));
        cluster.delete_node();
        steps = work_off(&mut cluster, &mut deeds, crash_at, steps);
    }
    let reading = cluster.read();
    let stored = reading.record().expect("two have died").labels().clone();
    let labels = &cluster.node.as_ref().expect("the third lives").labels;
    (format!("stored {stored:?}, live {labels:?}"), steps)
}

/// Posts all events, those of long ago too, and works them off.
fn work_off(
    cluster: &mut Cluster,
    deeds: &mut Deeds,
    crash_at: Option<usize>,
    mut steps: usize,
) -> usize {
    let events = cluster.events.clone();
    events.iter().for_each(|event| cluster.post(event));
    let mut processor = Processor::new(None);
    while !(cluster.queue.is_empty() && processor.is_idle()) {
        processor.step(cluster, deeds).expect("all promises are kept");
        steps += 1;
        if Some(steps) == crash_at {
            processor.crash();
        }
    }
    steps
}

/// The marker names a revision, and every repeated write takes one.
fn without_marker(text: &str) -> String {
    let (before, after) = text.split_once("labels_restored").expect("it was restored");
    format!("{before}{}", after.split_once('}').expect("it ends").1)
}

#[test]
fn a_crash_after_any_command_changes_nothing() {
    let (undisturbed, steps) = live(None);
    expect![[r#"stored {"born": "1", "edit1": "x", "edit2": "x"}, live {"born": "1", "edit1": "x", "edit2": "x", "labels_restored": "15"}"#]].assert_eq(&undisturbed);
    for crash_at in 1..=steps {
        let (disturbed, _) = live(Some(crash_at));
        assert_eq!(without_marker(&disturbed), without_marker(&undisturbed), "after {crash_at}");
    }
}
