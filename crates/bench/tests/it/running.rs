//! Rows on a server that was there before: here, a ceiling in the place of windlass.

use std::net::{Ipv4Addr, SocketAddr};

use bench::{
    ceiling::{Ceiling, Options},
    store::{self, Outcome, Place, Report, Role, Running, Subject},
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{launched_ceiling, options, tiny};

/// Runs rows on a ceiling of this process, called windlass, and on one of its own.
async fn run(rows: &[&str]) -> Report {
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let objects = usize::try_from(tiny().objects).unwrap();
    let ceiling = Ceiling::bind(&Options { listen, objects, data_dir: None }).await.unwrap();
    let running = Running { address: ceiling.address().unwrap(), pid: Some(std::process::id()) };
    let shutdown = CancellationToken::new();
    let mut server = JoinSet::new();
    server.spawn(ceiling.run(shutdown.clone()));

    let scratch = tempfile::tempdir().unwrap();
    let windlass = Subject { role: Role::Windlass, place: Place::Running(running) };
    let subjects = vec![windlass, launched_ceiling(Role::Ceiling)];
    let options = options(scratch.path(), subjects, rows);
    let report = store::run(&options, &mut |_| {}).await.unwrap();
    shutdown.cancel();
    server.join_next().await.unwrap().unwrap().unwrap();
    report
}

#[tokio::test(flavor = "multi_thread")]
async fn windlass_is_judged_by_what_was_measured_beside_it() {
    let report = run(&["count"]).await;
    assert_eq!(report.failures, []);
    let outcome = |against: Role| {
        let verdicts = report.rows[0].verdicts.iter();
        let mut found = verdicts.filter(|verdict| verdict.target.against == Some(against));
        found.next().unwrap().outcome
    };
    assert_eq!(outcome(Role::Etcd), Outcome::NotMeasured);
    assert_ne!(outcome(Role::Ceiling), Outcome::NotMeasured);
    assert!(report.rows[0].ratios_to(Role::Ceiling).is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_fails_is_reported_and_the_run_goes_on() {
    let report = run(&["put-while-compacting", "put-with-slow-watchers"]).await;
    let [failure] = &report.failures[..] else { panic!("one failure: {report:?}") };
    assert_eq!((failure.row.as_str(), failure.role), ("put-while-compacting-c100", Role::Windlass));
    assert!(failure.error.contains("/etcdserverpb.KV/Compact"), "{}", failure.error);
    assert!(report.to_string().contains("failed: put-while-compacting-c100 on windlass"));
    assert_eq!(report.rows[1].servers.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_survives_json() {
    let report = run(&["count"]).await;
    let json = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<Report>(&json).unwrap(), report);
}
