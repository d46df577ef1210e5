//! Whether a watcher runs, by what its Lease does and not by what it says.

use serde_json::{Value, json};

use super::admin;
use crate::{
    admin::{Error, Mode},
    asked::{Server, WATCHERS},
};

/// Years before and after the time of these tests.
const RENEW_TIMES: [&str; 2] = ["2020-01-01T00:00:00.000000Z", "2030-01-01T00:00:00.000000Z"];

fn lease(rv: &str, renewed: &str) -> Value {
    json!({
        "metadata": {"name": "watcher-w", "uid": "u", "resourceVersion": rv},
        "spec": {"holderIdentity": "w", "leaseDurationSeconds": 15, "renewTime": renewed},
    })
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_renews_is_alive_whatever_its_clock_says() {
    for renewed in RENEW_TIMES {
        let server = Server::default()
            .with_list(WATCHERS, &[lease("5", renewed)])
            .with_list(WATCHERS, &[lease("5", renewed)])
            .with_list(WATCHERS, &[lease("6", renewed)]);
        let error = admin(&server).uninstall(false, Mode::Write).await.unwrap_err();
        assert!(matches!(&error, Error::Watched { names } if names == &["watcher-w"]), "{error}");
        assert_eq!(server.writes(), [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_nobody_renews_is_a_dead_watchers_whatever_it_says() {
    for renewed in RENEW_TIMES {
        let began = tokio::time::Instant::now();
        let server = Server::default().with_list(WATCHERS, &[lease("5", renewed)]);
        admin(&server).uninstall(false, Mode::Write).await.unwrap();
        assert_eq!(began.elapsed().as_secs(), 15);
    }
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_starts_meanwhile_is_seen() {
    let server = Server::default().with_list(WATCHERS, &[lease("5", RENEW_TIMES[0])]).with_list(
        WATCHERS,
        &[
            lease("5", RENEW_TIMES[0]),
            json!({"metadata": {"name": "watcher-v", "resourceVersion": "7"}}),
        ],
    );
    let error = admin(&server).uninstall(false, Mode::Write).await.unwrap_err();
    assert!(matches!(&error, Error::Watched { names } if names == &["watcher-v"]), "{error}");
}

#[tokio::test(start_paused = true)]
async fn without_leases_nobody_is_waited_for() {
    let began = tokio::time::Instant::now();
    admin(&Server::default()).uninstall(false, Mode::Write).await.unwrap();
    assert_eq!(began.elapsed().as_secs(), 0);
}
