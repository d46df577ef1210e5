//! Somebody who watches everything and writes it down: the store below the API server, so that it goes
//! on seeing while that is away, and sees each version of each object.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use etcd_api::etcdserverpb as pb;
use etcd_api::mvccpb::{Event, EventType};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject, ObjectMeta, PostParams};
use pb::watch_request::RequestUnion;
use sharding::core::lease::DURATION_DEFAULT;
use tokio::task::JoinSet;
use tokio_stream::StreamExt;

use super::clock::monotonic;
use super::evidence::{LeaseSight, ObjectSight, Seen, Sight};
use crate::client::Client;
use crate::store::Store;
use crate::wait::{Level, wait_for};

/// What makes an API server store objects as the witness reads them.
pub(super) const STORED_AS: &str = "--storage-media-type=application/json";

/// How long the watch may lag behind.
const LAG_MAX: Duration = Duration::from_secs(30);

/// Everything that an API server stores is between these two.
const KEYS: (&str, &str) = ("/registry/", "/registry0");

const OBJECTS: [&str; 2] = ["/registry/secrets/", "/registry/configmaps/"];
const LEASES: &str = "/registry/leases/";

/// A running witness; dropping it ends its watch.
pub struct Witness {
    book: Arc<Mutex<Book>>,
    marks: AtomicUsize,
    _watch: JoinSet<()>,
}

#[derive(Default)]
struct Book {
    seen: Vec<Seen>,
    /// Why something may have been missed.
    lapse: Option<String>,
}

// === impl Witness ===

impl Witness {
    /// Sees everything from the beginning of the store.
    pub fn start(store: &Store) -> Result<Self> {
        let book = Arc::new(Mutex::new(Book::default()));
        let (client, notes) = (store.client()?, book.clone());
        let mut watch = JoinSet::new();
        watch.spawn(async move {
            let ended = follow(&client, &notes).await;
            let why = ended.map_or_else(
                |error| format!("{error:#}"),
                |()| "the store closed the watch".to_owned(),
            );
            lock(&notes).lapse = Some(why);
        });
        Ok(Self { book, marks: AtomicUsize::new(0), _watch: watch })
    }

    /// Everything that happened so far.
    ///
    /// # Errors
    ///
    /// If the watch lags, or may have missed something.
    pub async fn seen(&self, client: &kube::Client) -> Result<Vec<Seen>> {
        let name = format!("witness-{}", self.marks.fetch_add(1, Ordering::Relaxed));
        let marks: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-system");
        let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
        let mark = ConfigMap { metadata, ..ConfigMap::default() };
        let left = marks.create(&PostParams::default(), &mark).await;
        left.context("leave a mark for the witness")?;
        wait_for("the witness to have seen the mark", LAG_MAX, async || {
            let book = lock(&self.book);
            ensure!(book.lapse.is_none(), "the witness missed something: {:?}", book.lapse);
            let has_seen = book.seen.iter().any(|seen| seen.sight.name() == name);
            Ok(if has_seen {
                Level::Reached(book.seen.clone())
            } else {
                Level::Below(format!("{} changes", book.seen.len()))
            })
        })
        .await
    }
}

/// Writes down what happens, for as long as the watch lasts.
async fn follow(client: &Client, book: &Mutex<Book>) -> Result<()> {
    let (key, range_end) = KEYS;
    let create = pb::WatchCreateRequest {
        key: key.into(),
        range_end: range_end.into(),
        start_revision: 1,
        prev_kv: true,
        ..pb::WatchCreateRequest::default()
    };
    let request = pb::WatchRequest { request_union: Some(RequestUnion::CreateRequest(create)) };
    // A stream of requests that ended would end the watch.
    let requests = tokio_stream::once(request).chain(tokio_stream::pending());
    let mut answers = client.watch().watch(requests).await?.into_inner();
    while let Some(answer) = answers.message().await? {
        ensure!(!answer.canceled, "the watch was cancelled: {answer:?}");
        let at = monotonic();
        for event in &answer.events {
            if let Some(seen) = read(event, at)? {
                lock(book).seen.push(seen);
            }
        }
    }
    Ok(())
}

fn read(event: &Event, at: Duration) -> Result<Option<Seen>> {
    let pair = event.kv();
    let key = String::from_utf8_lossy(pair.key()).into_owned();
    let is_lease = key.starts_with(LEASES);
    if !is_lease && !OBJECTS.iter().any(|prefix| key.starts_with(prefix)) {
        return Ok(None);
    }
    let version = pair.mod_revision().try_into().context("revisions are not negative")?;
    let is_gone = event.kind() == EventType::Delete;
    let stored = if is_gone { event.prev_kv() } else { Some(pair) };
    let stored = stored.with_context(|| format!("{key} is gone, and nobody knows what it was"))?;
    let object: DynamicObject = serde_json::from_slice(stored.value())
        .with_context(|| format!("read {key} as it is stored"))?;
    let sight = if is_lease { lease(&object) } else { plain(&object) };
    Ok(Some(Seen { at, version, is_gone, sight }))
}

fn lease(object: &DynamicObject) -> Sight {
    let text = |field: &str| object.data["spec"][field].as_str().map(ToOwned::to_owned);
    let seconds = object.data["spec"]["leaseDurationSeconds"].as_u64();
    Sight::Lease(LeaseSight {
        name: object.name_any(),
        labels: object.labels().clone(),
        annotations: object.annotations().clone(),
        holder: text("holderIdentity"),
        lasts: seconds.map_or(DURATION_DEFAULT, Duration::from_secs),
        renewed: text("renewTime").and_then(|time| time.parse().ok()),
    })
}

fn plain(object: &DynamicObject) -> Sight {
    let owners = object.owner_references().iter();
    let mut controllers = owners.filter(|owner| owner.controller == Some(true));
    Sight::Object(ObjectSight {
        uid: object.uid().unwrap_or_default(),
        namespace: object.namespace().unwrap_or_default(),
        name: object.name_any(),
        labels: object.labels().clone(),
        controller: controllers.next().map(|owner| owner.uid.clone()),
    })
}

/// Nothing in here can panic halfway.
fn lock(book: &Mutex<Book>) -> MutexGuard<'_, Book> {
    book.lock().unwrap_or_else(PoisonError::into_inner)
}
