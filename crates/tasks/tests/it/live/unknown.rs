//! Answers that are lost: what was carried out is recognised, and nothing is done twice.

use std::time::Duration;

use jiff::Timestamp;
use tasks::core::id::WriteId;
use tasks::core::keys::KeyRange;
use tasks::core::status::Status;
use tasks::core::transition::{CancelStep, Settled, Stamp, cancel};
use tasks::store::{Error, SubmitFailed};
use tokio::time::Instant;
use uuid::Uuid;

use super::etcd::{self, Etcd};
use super::proxy::Proxy;
use super::waiting::{soon, until};
use crate::scene::spec;

#[tokio::test]
async fn a_submit_whose_answer_is_lost_is_recognised() {
    let etcd = Etcd::start().await;
    let proxy = Proxy::start(etcd.address()).await;
    let client = etcd::connect(proxy.address());
    client.list(KeyRange::TASKS).await.expect("the line is whole");
    proxy.mute();
    let direct = etcd.client();
    let healed = async {
        until("the task", async || {
            let listed = direct.list(KeyRange::TASKS).await.ok()?;
            (listed.kvs.len() == 1).then_some(())
        })
        .await;
        proxy.heal();
    };
    let (submitted, ()) = tokio::join!(client.submit(spec(), "me", soon()), healed);
    let submitted = submitted.expect("the second sending finds the first");
    assert!(!submitted.is_repeated, "it was this submit that did it");
    assert_eq!(direct.list(KeyRange::TASKS).await.unwrap().kvs.len(), 1);
    etcd.assert_in_sync().await;
}

#[tokio::test]
async fn a_change_whose_answer_is_lost_is_recognised() {
    let etcd = Etcd::start().await;
    let proxy = Proxy::start(etcd.address()).await;
    let (client, direct) = (etcd::connect(proxy.address()), etcd.client());
    let id = etcd.submit(spec()).await;
    let before = client.get(id).await.unwrap().expect("it was submitted");
    let Ok(CancelStep::Write(plan)) = cancel(&before, "me", stamp()) else { panic!("it goes on") };
    proxy.mute();
    let healed = async {
        until("the cancel", async || {
            let record = direct.get(id).await.ok()??;
            record.task.status.is_final().then_some(())
        })
        .await;
        proxy.heal();
    };
    let (settled, ()) = tokio::join!(client.settle(&plan, soon()), healed);
    let Ok(Settled::Won(Some(after))) = settled else { panic!("it was ours: {settled:?}") };
    assert!(matches!(after.task.status, Status::Canceled(_)));
    assert_eq!(direct.get(id).await.unwrap(), Some(*after));
}

fn stamp() -> Stamp {
    let write_id = WriteId(Uuid::from_u128(7));
    Stamp { now: Timestamp::now(), write_id }
}

/// A client that has no more time says that it does not know, and never that it failed.
#[tokio::test]
async fn a_call_that_is_out_of_time_has_an_unknown_outcome() {
    let etcd = Etcd::start().await;
    let proxy = Proxy::start(etcd.address()).await;
    let client = etcd::connect(proxy.address());
    client.list(KeyRange::TASKS).await.expect("the line is whole");
    proxy.cut();
    let until = Instant::now() + Duration::from_millis(300);
    let failed = client.submit(spec(), "me", until).await.unwrap_err();
    assert!(matches!(failed, SubmitFailed::Store(Error::Unknown(_))), "{failed:?}");
}
