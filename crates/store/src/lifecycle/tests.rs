//! What the end of a task means to the store.

use super::*;

/// An edge that serves until it is asked to stop, and one task beside it.
async fn check(work: impl Future<Output = Result<(), Error>> + Send + 'static) -> String {
    let shutdown = CancellationToken::new();
    let mut tasks = Tasks::new(shutdown.clone());
    tasks.spawn("work", work);
    let edge_ended = CancellationToken::new();
    let edge = async {
        shutdown.cancelled().await;
        Ok(())
    };
    let ended = beside(tasks, edge, edge_ended.clone()).await;
    assert!(edge_ended.is_cancelled());
    ended.expect_err("the store does not go on without a part of itself").to_string()
}

#[tokio::test]
async fn a_task_that_panics_ends_the_store() {
    assert_eq!(check(async { panic!("as the test asks") }).await, "`work` panicked");
}

#[tokio::test]
async fn a_task_that_fails_ends_the_store() {
    let failing = async { Err(Error::Stopped) };
    assert_eq!(check(failing).await, "the task `work` failed");
}

#[tokio::test]
async fn a_task_that_stops_early_ends_the_store() {
    assert_eq!(check(async { Ok(()) }).await, "the task `work` ended without being asked");
}

/// Some tasks end when they are asked, others when the edge has drained; neither is a failure.
#[tokio::test]
async fn tasks_end_when_they_are_asked() {
    let shutdown = CancellationToken::new();
    let edge_ended = CancellationToken::new();
    let mut tasks = Tasks::new(shutdown.clone());
    for asked in [shutdown.clone(), edge_ended.clone()] {
        tasks.spawn("work", async move {
            asked.cancelled().await;
            Ok(())
        });
    }
    let edge = async {
        shutdown.cancelled().await;
        // Gives the first task the time to end before the edge does.
        tokio::task::yield_now().await;
        Ok(())
    };
    shutdown.cancel();
    beside(tasks, edge, edge_ended).await.expect("all of it was asked for");
}

/// Upkeep that comes upon the journal after a commit failed says only that something did, and could be
/// first to say it.
#[test]
fn the_write_that_failed_is_told_whoever_noticed_first() {
    let commit = || {
        let source = journal::Error::Io {
            step: "cannot sync",
            path: "segment".into(),
            source: io::ErrorKind::StorageFull.into(),
        };
        let source = CommitError::Append { source: journal::AppendError::Failed { source } };
        StopError::Commit { source }
    };
    let housekeeping = || {
        let source = HousekeepingError::Maintain {
            source: journal::Error::Stopped { path: "folder".into() },
        };
        StopError::Housekeeping { source }
    };
    for outcomes in [[commit(), housekeeping()], [housekeeping(), commit()]] {
        let (report, threads) = Threads::none();
        outcomes.into_iter().for_each(|outcome| report.try_send(outcome).expect("there is room"));
        drop(report);
        let told = threads.join().expect_err("both failed");
        assert_eq!(told.to_string(), "writes can no longer be made durable");
    }
}
