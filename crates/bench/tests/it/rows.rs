//! Rows on ceilings that are processes of their own.

use bench::store::{self, Launch, Metric, Options, Place, Report, Role, Row, Subject};

use crate::{launched_ceiling, options};

async fn run(options: &Options) -> Report {
    store::run(options, &mut |_| {}).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_row_that_a_ceiling_has_gives_figures() {
    let scratch = tempfile::tempdir().unwrap();
    let subjects = vec![launched_ceiling(Role::Ceiling), launched_ceiling(Role::DurableCeiling)];
    let options = options(scratch.path(), subjects, &[]);
    let report = run(&options).await;
    assert_eq!(report.failures, []);

    for (row, found) in store::all_rows().iter().zip(&report.rows) {
        let expected: Vec<Role> =
            options.subjects.iter().filter(|it| row.runs_on(it)).map(|it| it.role).collect();
        let measured: Vec<Role> = found.servers.iter().map(|server| server.role).collect();
        assert_eq!(measured, expected, "servers of {}", row.name());
        for server in &found.servers {
            assert!(server.medians.get(Metric::RatePerSecond).unwrap() > 0.0);
            assert!(server.medians.get(Metric::P50Micros) <= server.medians.get(Metric::P99Micros));
            assert!(server.medians.get(Metric::ResidentBytes).unwrap() > 0.0);
        }
    }
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0, "scratch is left empty");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_durable_ceiling_writes_what_it_answers() {
    let scratch = tempfile::tempdir().unwrap();
    let subjects = vec![launched_ceiling(Role::DurableCeiling)];
    let report = run(&options(scratch.path(), subjects, &["put-2048B-c100"])).await;
    let [row] = &report.rows[..] else { panic!("one row was chosen: {report:?}") };
    let figures = &row.servers[0].medians;
    let answered = figures.get(Metric::RatePerSecond).unwrap() * 0.1 * 2048.0;
    assert!(figures.get(Metric::DiskApparentBytes).unwrap() >= answered);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_start_is_a_failure_with_its_words() {
    let scratch = tempfile::tempdir().unwrap();
    let launch =
        Launch { program: "/bin/sh".into(), args: vec!["-c".into(), "echo no; exit 3".into()] };
    let subjects = vec![Subject { role: Role::Etcd, place: Place::Launched(launch) }];
    let report = run(&options(scratch.path(), subjects, &["count"])).await;
    let [failure] = &report.failures[..] else { panic!("one failure: {report:?}") };
    assert!(failure.error.contains("exit status: 3"), "{}", failure.error);
    assert!(failure.error.ends_with("no\n"), "{}", failure.error);
}

#[tokio::test]
async fn a_row_that_does_not_exist_is_refused_with_those_that_do() {
    let scratch = tempfile::tempdir().unwrap();
    let options = options(scratch.path(), vec![launched_ceiling(Role::Ceiling)], &["pot"]);
    let error = store::run(&options, &mut |_| {}).await.unwrap_err().to_string();
    assert!(error.contains("\"pot\""), "{error}");
    for name in store::all_rows().iter().map(Row::name) {
        assert!(error.contains(&name), "{error}");
    }
}
