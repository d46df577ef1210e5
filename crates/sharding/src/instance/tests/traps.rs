//! The traps of kube-rs that can be had without a server, one by one. A hanging watch, and drains that
//! raise no generation, need one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::{FutureExt, StreamExt, channel::mpsc, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::Status;
use kube::runtime::controller::{Action, Error as ControllerError};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::{WatchStreamExt, predicates, watcher};
use kube::{Api, Config};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::scene::{FENCE, Scene, seen, stored};
use crate::core::instance::{Event, Outcome};
use crate::instance::desk::is_refused_by;
use crate::instance::lease_client;

/// Room for all events of a test.
const EVENTS: usize = 8;
const MS: Duration = Duration::from_millis(1);

/// The filter's cache knows nothing of deletions, and generations do not change with labels.
#[tokio::test]
async fn what_was_given_up_and_came_back_passes_the_filter() {
    let mut scene = Scene::new();
    let (mut events, watched) = mpsc::channel::<watcher::Result<ConfigMap>>(EVENTS);
    let predicate = scene.shard.predicate(predicates::generation);
    let mut filtered = watched.predicate_filter(predicate, Default::default()).boxed();
    let mut passes = |object| {
        events.try_send(Ok(object)).unwrap();
        filtered.next().now_or_never().is_some()
    };
    assert!(passes(stored("a-0", 7, false)));
    assert!(!passes(stored("a-0", 8, false)), "the user's predicate is what filters");

    let drained = seen("a-0", 9, true);
    scene.desk.tell(Event::Seen(Box::new(drained.clone())));
    scene.pass(MS);
    scene.desk.tell(Event::Acknowledged(drained.name, Outcome::Done(())));
    assert!(passes(stored("a-0", 9, true)), "as it was, deleted from the watch");
    assert!(passes(stored("a-0", 20, false)), "it is back");
    assert!(!passes(stored("a-0", 21, false)));
}

/// The same where the watch was cut and shows nothing of what was in between.
#[tokio::test]
async fn a_return_is_noticed_even_if_the_departure_was_not() {
    let mut scene = Scene::new();
    let (mut events, watched) = mpsc::channel::<watcher::Result<ConfigMap>>(EVENTS);
    let predicate = scene.shard.predicate(predicates::generation);
    let mut filtered = watched.predicate_filter(predicate, Default::default()).boxed();
    let mut passes = |object| {
        events.try_send(Ok(object)).unwrap();
        filtered.next().now_or_never().is_some()
    };
    assert!(passes(stored("a-0", 7, false)));
    scene.desk.tell(Event::Seen(Box::new(seen("a-0", 9, true))));
    scene.pass(MS);
    assert!(passes(stored("a-0", 20, false)));
}

#[tokio::test]
async fn an_object_that_left_before_its_turn_is_no_error() {
    let object = ObjectRef::<ConfigMap>::new("a").within("shop");
    let missing = ControllerError::ObjectNotFound(Box::new(object.clone().erase()));
    let failed = ControllerError::QueueError(kube::Error::LinesCodecMaxLineLengthExceeded);
    let worked: [Result<_, ControllerError<kube::Error, kube::Error>>; 3] =
        [Err(missing), Ok((object, Action::await_change())), Err(failed)];
    let told = Scene::new().shard.outcomes(stream::iter(worked)).map(|outcome| outcome.is_ok());
    let kept: Vec<bool> = told.collect().await;
    assert_eq!(kept, [true, false]);
}

/// kube's default would ask fifteen times more, over minutes.
#[tokio::test]
async fn the_lease_client_asks_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let requests = Arc::new(AtomicUsize::new(0));
    let serve = async {
        loop {
            let (mut connection, _) = listener.accept().await.unwrap();
            let mut request = [0; 4096];
            let read = connection.read(&mut request).await.unwrap();
            assert!(request[..read].ends_with(b"\r\n\r\n"));
            requests.fetch_add(1, Ordering::Relaxed);
            let busy = b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            connection.write_all(busy).await.unwrap();
        }
    };
    let client = lease_client(Config::new(format!("http://{address}").parse().unwrap())).unwrap();
    let api: Api<ConfigMap> = Api::namespaced(client, "shop");
    tokio::select! {
        answer = api.get("a") => assert!(answer.is_err()),
        () = serve => {}
    }
    assert_eq!(requests.load(Ordering::Relaxed), 1);
}

/// What a reconcile still sent when it was stopped is refused by the fence, and counted.
#[tokio::test]
async fn refusals_of_the_fence_are_told_from_others() {
    #[derive(Debug, thiserror::Error)]
    #[error("cannot apply")]
    struct Apply(#[source] Box<kube::Error>);
    let refusal = |policy: &str| {
        let message =
            format!("ValidatingAdmissionPolicy '{policy}' with binding 'x' denied request");
        let status: Status =
            serde_json::from_value(json!({"code": 422, "message": message})).unwrap();
        kube::Error::Api(status.boxed())
    };
    assert!(is_refused_by(FENCE, &refusal(FENCE)));
    assert!(is_refused_by(FENCE, &Apply(Box::new(refusal(FENCE)))));
    assert!(!is_refused_by(FENCE, &refusal("quota")));
    assert!(!is_refused_by(FENCE, &Apply(Box::new(refusal("windlass-fence-other")))));
}

#[tokio::test]
async fn children_are_stamped_and_watched_by_the_same_label() {
    let scene = Scene::new();
    let mut child = ConfigMap::default();
    scene.shard.stamp(&mut child.metadata);
    let labels = child.metadata.labels.unwrap();
    let stamped: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    assert_eq!(stamped, ["shard.windlass.dev/sites=a-0"]);
    let config = scene.shard.config();
    assert_eq!(config.label_selector.as_deref(), Some("shard.windlass.dev/sites=a-0"));
    assert_eq!(config.list_semantic, watcher::ListSemantic::MostRecent);
}
