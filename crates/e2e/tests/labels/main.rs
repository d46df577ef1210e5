//! The labels service against a real API server, on etcd and on windlass, and against that of the oldest
//! Kubernetes it is made for. The cases on one ground share a cluster and run one after the other, each
//! with nodes of its own.

mod commands;
mod deaths;
mod faults;
mod regressions;
mod rights;
mod seed;
mod stage;
mod storms;

use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use e2e::kube::Ground;
use e2e::scene::is_full;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use tokio::runtime::Runtime;

use stage::{Case, Theatre};

const GROUNDS: [Ground; 3] = [Ground::ETCD, Ground::WINDLASS, Ground::OLDEST];

/// They wait long for replicas, and the store has no part in it: they are played on etcd, unless all is
/// asked for.
const ONCE: [&str; 3] = [
    "metrics_tell_the_size_of_every_store",
    "killed_replica_mid_transaction_is_replaced",
    "stalled_replica_late_write_is_refused",
];

/// What the oldest Kubernetes might do in another way, played there unless all is asked for: admission,
/// rights, applying, positions of watches, Events.
const ON_OLDEST: [&str; 8] = [
    "added_restores_all_labels_and_marker",
    "edge_delete_add_delete_keeps_labels",
    "accounts_have_the_rights_of_the_table_and_no_others",
    "stores_are_closed_to_the_mightiest_stranger",
    "processor_changes_labels_and_nothing_else_of_a_node",
    "watchers_down_over_delete_and_return_beyond_history",
    "kustomization_is_applied",
    "events_tell_what_was_stored_and_restored",
];

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let runtime = Runtime::new().expect("a runtime can be made");
    let theatre = Arc::new(Mutex::new(Theatre::new(runtime)));
    check_names(&cases());
    let trials = GROUNDS.iter().flat_map(|ground| {
        let theatre = theatre.clone();
        cases().into_iter().map(move |case| trial(&theatre, *ground, case))
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

fn cases() -> Vec<Case> {
    [
        seed::cases(),
        deaths::cases(),
        regressions::cases(),
        rights::cases(),
        faults::cases(),
        storms::cases(),
        commands::cases(),
    ]
    .concat()
}

/// A name that no case has would choose nothing, and nobody would notice.
fn check_names(cases: &[Case]) {
    for name in ONCE.iter().chain(&ON_OLDEST) {
        assert!(cases.iter().any(|case| case.name == *name), "there is no case {name}");
    }
}

fn is_long(ground: Ground, case: &Case) -> bool {
    match ground {
        Ground::ETCD => false,
        Ground::OLDEST => !ON_OLDEST.contains(&case.name),
        _ => ONCE.contains(&case.name),
    }
}

fn trial(theatre: &Arc<Mutex<Theatre>>, ground: Ground, case: Case) -> Trial {
    let theatre = theatre.clone();
    let is_left_out = is_long(ground, &case) && !is_full();
    let trial = Trial::ignorable_test(format!("{}::{}", ground.name, case.name), move || {
        // A case that panicked leaves the lock poisoned; the next one starts on a new stage.
        let mut theatre = theatre.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match theatre.play(ground, case) {
            Ok(None) => Ok(Completion::Completed),
            Ok(Some(reason)) => Ok(Completion::ignored_with(reason)),
            Err(error) => Err(Failed::from(format!("{error:?}"))),
        }
    });
    trial.with_ignored_flag(is_left_out)
}
