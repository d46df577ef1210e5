//! The watcher's single steps before a server that refuses on demand: what it asks, what it tells, and
//! whether it calls itself ready. Against a real server it is tested in `e2e`.

use expect_test::expect;
use kubekit::{
    events,
    follow::{Retry, Source as _},
    health::Health,
    metrics::Events as EventMetrics,
};
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{
    posting::{Ended, post},
    upkeep::{Upkept, keep, save},
    *,
};
use crate::{
    asked::{CHECKPOINTS, NODES, Server},
    core::{
        checkpoint::Checkpoint,
        names::NodeHash,
        object::{Document, Labels, LiveNode, Uid},
        watch::{
            checkpoints::Saved,
            index::{EventKind, NodeEvent},
            post::Post,
            resume::{self, Step},
        },
    },
    kubernetes::Objects,
    options::Namespaces,
};

struct Scene {
    context: Arc<Context>,
    events: events::Service,
    health: Health,
}

fn clock() -> jiff::Timestamp {
    "2026-03-01T09:00:00Z".parse().unwrap()
}

fn live(labels: Labels) -> LiveNode {
    LiveNode {
        name: "a".to_owned(),
        uid: Uid("u1".to_owned()),
        rv: "5".parse().unwrap(),
        created: clock(),
        labels,
        marker: None,
        is_terminating: false,
    }
}

fn forbidden() -> Value {
    json!({"code": 403, "reason": "Forbidden", "message": "no"})
}

fn without_namespace() -> Value {
    json!({"code": 404, "reason": "NotFound", "details": {"kind": "namespaces"}})
}

// === impl Scene ===

impl Scene {
    fn new(server: &Server) -> Self {
        Self::with(server, false)
    }

    fn with(server: &Server, is_dry_run: bool) -> Self {
        let (mut registry, health) = (Registry::default(), Health::default());
        let options = events::Options {
            controller: "windlass.dev/labels".to_owned(),
            instance: "w".to_owned(),
            clock,
        };
        let event_metrics = EventMetrics::register(&mut registry);
        let (events, handle) = events::new(server.client(), options, event_metrics);
        let status = Status::new(&health, Arc::new(Notify::new()));
        status.on_heard_of_nodes();
        status.on_watching(status::Watch::TransactionNames);
        status.on_watching(status::Watch::Checkpoints);
        let context = Arc::new(Context {
            objects: Objects::new(&server.client(), &Namespaces::default()),
            metrics: Metrics::new(&mut registry),
            events: handle,
            status,
            clock,
            retention: SignedDuration::ZERO,
            is_dry_run,
        });
        Self { context, events, health }
    }

    async fn publish(self) {
        let shutdown = CancellationToken::new();
        shutdown.cancel();
        self.events.run(shutdown).await;
    }

    /// The desk of a watcher that has read this and is told nothing more.
    fn desk(&self, server: &Server, engine: Engine) -> Desk {
        let options = presence::Options {
            namespace: "node-metadata-checkpoints".to_owned(),
            prefix: PRESENCE_PREFIX.to_owned(),
            id: "w".to_owned(),
            labels: [].into(),
            duration: PRESENCE_DURATION,
            renew_every: PRESENCE_RENEW_EVERY,
            clock,
        };
        let (_, members) = presence::new(server.client(), options).unwrap();
        let (nodes, transactions) = (mpsc::channel(1).1, mpsc::channel(1).1);
        let inbox = Inbox { nodes, transactions, checkpoints: mpsc::channel(1).1, members };
        Desk::new(self.context.clone(), engine, inbox)
    }

    async fn save(&self) -> Upkept {
        save(self.context.clone(), live([].into()), None).await
    }
}

#[tokio::test(start_paused = true)]
async fn rights_that_come_back_make_it_ready_again_without_an_event_of_a_node() {
    for refusal in [forbidden(), without_namespace()] {
        let server = Server::default().refusing(&format!("POST {CHECKPOINTS}"), refusal);
        let scene = Scene::new(&server);
        assert_eq!(scene.health.lack(), None);
        assert!(matches!(scene.save().await, Upkept::NotNow(_)));
        let lack = scene.health.lack().unwrap();
        assert!(lack.contains("[-]saving failed: cannot create ConfigMap"), "{lack}");
        assert!(matches!(scene.save().await, Upkept::Saved(_)));
        assert_eq!(scene.health.lack(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_kept_position_shows_that_rights_are_back() {
    let server = Server::default().refusing(&format!("POST {CHECKPOINTS}"), forbidden());
    let scene = Scene::new(&server);
    scene.save().await;
    assert!(scene.health.lack().is_some());
    let step = Step::Write { position: "5".parse().unwrap() };
    keep(scene.context.clone(), step, None).await;
    assert_eq!(scene.health.lack(), None);
}

#[tokio::test(start_paused = true)]
async fn what_another_watcher_did_meanwhile_keeps_nobody_from_being_ready() {
    let server = Server::default().refusing(&format!("POST {CHECKPOINTS}"), forbidden());
    let scene = Scene::new(&server);
    scene.save().await;
    tokio::time::advance(Duration::from_secs(59)).await;
    assert!(scene.health.lack().is_some());
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(scene.health.lack(), None);
}

/// A watcher that was told to stop tried a checkpoint that was refused again and again, without a
/// pause, until its eight seconds were over, and then had no time left to keep its position.
#[tokio::test(start_paused = true)]
async fn a_refused_checkpoint_is_tried_once_before_the_end_and_the_position_is_kept() {
    let old = live([].into());
    let document = Checkpoint::of(&old).encode().unwrap();
    let path = format!("{CHECKPOINTS}/{}", document.name);
    let server = (0..100)
        .fold(Server::default(), |server, _| server.refusing(&format!("PUT {path}"), forbidden()));
    let scene = Scene::new(&server);
    let (uid, rv) = (Some(Uid("c".to_owned())), Some("7".to_owned()));
    let mut engine = Engine::new("w".to_owned(), Duration::from_secs(5), Instant::now().into_std());
    engine.on_checkpoint(Saved::decode(&Document { uid, rv, ..document }).unwrap());
    let labels = [("rack".to_owned(), "r7".to_owned())].into();
    let node = LiveNode { rv: "8".parse().unwrap(), labels, ..old };
    let event = NodeEvent { kind: EventKind::Modified, node };
    engine.on_event(event, Instant::now().into_std());
    scene.desk(&server, engine).drain().await;
    assert_eq!(server.writes(), [format!("PUT {path}"), format!("POST {CHECKPOINTS}")]);
}

#[tokio::test(start_paused = true)]
async fn labels_that_fit_nowhere_are_told_of_while_the_node_lives() {
    let server = Server::default();
    let scene = Scene::new(&server);
    let labels = [("key".to_owned(), "x".repeat(1_000_000))].into();
    let saved = save(scene.context.clone(), live(labels), None).await;
    assert!(matches!(saved, Upkept::Never(_)));
    scene.publish().await;
    assert_eq!(server.told(), ["SnapshotTooLarge"]);
    assert_eq!(server.writes(), [""; 0]);
}

/// A server with a checkpoint of the node whose labels cannot be read, and the wish to tell its end.
fn broken_checkpoint() -> (Server, Post) {
    let checkpoint = Checkpoint::of(&live([].into())).encode().unwrap();
    let object = json!({
        "metadata": {
            "name": checkpoint.name, "uid": "c", "resourceVersion": "7",
            "annotations": checkpoint.annotations,
        },
        "data": {"snapshot.json": "{"},
    });
    let server = Server::default().with(&format!("{CHECKPOINTS}/{}", checkpoint.name), object);
    (server, Post::checkpointed(NodeHash::of("a"), Uid("u1".to_owned())))
}

#[tokio::test(start_paused = true)]
async fn a_broken_checkpoint_is_told_of_and_stays() {
    let (server, wanted) = broken_checkpoint();
    let scene = Scene::new(&server);
    assert!(matches!(post(scene.context.clone(), wanted).await, Ended::Untold(_)));
    scene.publish().await;
    assert_eq!(server.told(), ["CheckpointUnreadable"]);
    assert_eq!(server.writes(), [""; 0]);
}

/// A dry run posted this Event and no other, with an account that may have the right to read alone.
#[tokio::test(start_paused = true)]
async fn a_dry_run_tells_nobody_of_a_broken_checkpoint() {
    let (server, wanted) = broken_checkpoint();
    let scene = Scene::with(&server, true);
    assert!(matches!(post(scene.context.clone(), wanted).await, Ended::Untold(_)));
    scene.publish().await;
    assert_eq!(server.told(), [""; 0]);
    assert_eq!(server.writes(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn versions_without_an_order_are_told_of_and_nothing_is_posted() {
    let list = json!({"metadata": {"resourceVersion": "opaque-7"}, "items": []});
    let server = Server::default().with(NODES, list);
    let scene = Scene::new(&server);
    let (news, mut taken) = mpsc::channel(1);
    let mut feed = NodeFeed::new(scene.context.clone(), news);
    let error = feed.begin().await.err().unwrap();
    feed.on_failure(&error);
    let lack = scene.health.lack().unwrap();
    assert!(lack.contains("[-]nodes-watch failed: nodes cannot be listed"), "{lack}");
    drop(feed);
    assert!(taken.recv().await.is_none(), "there is no news to post");
    scene.publish().await;
    assert_eq!(server.told(), ["ResourceVersionUnusable"]);
    assert_eq!(server.writes(), [""; 0]);
}

/// The position that some watcher kept.
fn kept(position: &str) -> Value {
    let resume = resume::encode(&position.parse().unwrap());
    json!({"metadata": {
        "name": resume.name, "uid": "k", "resourceVersion": "7", "annotations": resume.annotations,
    }})
}

/// Begins to follow nodes before this server, which is at 99; `expires` if the server then no longer
/// has the events. Returns what people were told.
async fn told_by_feed(server: Server, expires: bool) -> Vec<String> {
    let scene = Scene::new(&server);
    let (news, mut taken) = mpsc::channel(1);
    let mut feed = NodeFeed::new(scene.context.clone(), news);
    assert!(feed.begin().await.is_ok());
    if expires {
        let gone = json!({"code": 410, "reason": "Expired", "message": "too old"});
        drop(server.clone().refusing(&format!("GET {NODES}"), gone));
        let error = feed.begin().await.err().unwrap();
        assert_eq!(feed.on_failure(&error), Retry::Soon);
        assert!(feed.begin().await.is_ok());
    }
    drop(feed);
    while taken.recv().await.is_some() {}
    scene.publish().await;
    let told = server.told().into_iter().zip(server.notes());
    told.map(|(reason, note)| format!("{reason}: {note}")).collect()
}

/// A list that stood in for missed events was one line of a log, and the only moment at which an
/// incarnation can be lost.
#[tokio::test(start_paused = true)]
async fn missed_events_are_told_of_with_where_they_were() {
    let resume = format!("{CHECKPOINTS}/resume");
    let after = |position| Server::default().with(&resume, kept(position));
    let told = told_by_feed(after("50"), true).await;
    expect![[r#"
        [
            "HistoryMissed: what happened to Nodes between resourceVersions 50 and 99 was not seen: the API server no longer has it. Of Nodes deleted there, only checkpoints tell the labels; of one that was born there too, nothing does",
        ]
    "#]]
    .assert_debug_eq(&told);
    let told = told_by_feed(after("200"), false).await;
    expect![[r#"
        [
            "HistoryMissed: history went back: Nodes were seen up to resourceVersion 200, and the API server is at 99; what happened between the version it went back to and 99 was not seen. Of Nodes deleted there, only checkpoints tell the labels; of one that was born there too, nothing does",
        ]
    "#]]
    .assert_debug_eq(&told);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_missed_by_who_goes_on_or_begins() {
    let resume = format!("{CHECKPOINTS}/resume");
    let nobody = Vec::<String>::new();
    assert_eq!(told_by_feed(Server::default(), false).await, nobody, "a first start");
    let server = Server::default().with(&resume, kept("50"));
    assert_eq!(told_by_feed(server, false).await, nobody, "the server has all events");
}
