//! The keyspace's stories, told to whole stores: what they expect is what etcd answers, and what
//! windlass answers through its API.

use anyhow::{Result, ensure};
use e2e::scene::{Scene, suite};
use e2e::store::{Lane, Store, StoreOptions};
use e2e::stories;

#[test]
fn etcd_answers_as_the_stories_expect() {
    suite("etcd_answers_as_the_stories_expect", &[Lane::Etcd.asset()], async |scene| {
        check(scene, Lane::Etcd).await
    });
}

#[test]
fn windlass_answers_as_the_stories_expect() {
    suite("windlass_answers_as_the_stories_expect", &[Lane::Windlass.asset()], async |scene| {
        check(scene, Lane::Windlass).await
    });
}

/// Every story on a fresh store; all differences are told at once.
async fn check(scene: &Scene, lane: Lane) -> Result<()> {
    let mut differences = Vec::new();
    for story in stories::all()? {
        let options = StoreOptions::new(lane, &story.name).flags(lane.without_sync());
        let store = Store::start(scene, &options).await?;
        differences.extend(story.tell(&[store.client()?]).await?);
    }
    ensure!(differences.is_empty(), "{}", differences.join("\n"));
    Ok(())
}
