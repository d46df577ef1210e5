//! The names that dashboards know, as etcd 3.7 prints them.

use etcd_api::etcdserverpb::{
    LeaseGrantRequest, LeaseKeepAliveRequest, PutRequest, RangeRequest, RequestOp, StatusRequest,
    TxnRequest, WatchCreateRequest, WatchRequest, request_op::Request as Op,
    watch_request::RequestUnion,
};
use futures::{StreamExt, stream};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::harness::{Store, soon};

/// Name and kind of everything a scraper of etcd may rely on here.
const KINDS: &str = "\
etcd_cluster_version gauge
etcd_debugging_auth_revision gauge
etcd_debugging_lease_granted_total counter
etcd_debugging_lease_renewed_total counter
etcd_debugging_lease_revoked_total counter
etcd_debugging_mvcc_compact_revision gauge
etcd_debugging_mvcc_current_revision gauge
etcd_debugging_mvcc_events_total counter
etcd_debugging_mvcc_keys_total gauge
etcd_debugging_mvcc_slow_watcher_total gauge
etcd_debugging_mvcc_watch_stream_total gauge
etcd_debugging_mvcc_watcher_total gauge
etcd_debugging_server_lease_expired_total counter
etcd_disk_backend_commit_duration_seconds histogram
etcd_disk_wal_fsync_duration_seconds histogram
etcd_mvcc_db_total_size_in_bytes gauge
etcd_mvcc_db_total_size_in_use_in_bytes gauge
etcd_mvcc_delete_total counter
etcd_mvcc_put_total counter
etcd_mvcc_range_total counter
etcd_mvcc_txn_total counter
etcd_network_client_grpc_received_bytes_total counter
etcd_network_client_grpc_sent_bytes_total counter
etcd_server_has_leader gauge
etcd_server_is_leader gauge
etcd_server_is_learner gauge
etcd_server_leader_changes_seen_total counter
etcd_server_proposals_applied_total gauge
etcd_server_proposals_committed_total gauge
etcd_server_proposals_failed_total counter
etcd_server_proposals_pending gauge
etcd_server_quota_backend_bytes gauge
etcd_server_version gauge
grpc_server_handled_total counter
grpc_server_handling_seconds histogram
grpc_server_started_total counter
process_cpu_seconds_total counter
process_max_fds gauge
process_open_fds gauge
process_resident_memory_bytes gauge
process_start_time_seconds gauge
";

/// What a scraper of the older text format gets.
async fn scrape(store: &Store) -> String {
    let mut socket = TcpStream::connect(store.address()).await.expect("it listens");
    let request = "GET /metrics HTTP/1.1\r\nhost: store\r\nconnection: close\r\n\r\n";
    socket.write_all(request.as_bytes()).await.expect("it reads");
    let mut answer = String::new();
    soon(socket.read_to_string(&mut answer)).await.expect("it answers");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    answer.split_once("\r\n\r\n").expect("a head and a body").1.to_owned()
}

/// The value of one sample; panics if there is none.
fn value(scraped: &str, sample: &str) -> f64 {
    let line = scraped.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no sample `{sample}`")).parse().expect("a number")
}

#[tokio::test]
async fn l46_names_and_kinds_are_etcds() {
    let store = Store::start().await;
    let scraped = scrape(&store).await;
    let mut kinds: Vec<_> =
        scraped.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, KINDS.lines().collect::<Vec<_>>());
}

#[tokio::test]
async fn a_fresh_store_tells_of_itself() {
    let store = Store::start().await;
    let scraped = scrape(&store).await;
    for (sample, expected) in [
        ("etcd_server_has_leader", 1.0),
        ("etcd_server_is_leader", 1.0),
        ("etcd_server_version{server_version=\"3.7.1\"}", 1.0),
        ("etcd_cluster_version{cluster_version=\"3.7\"}", 1.0),
        ("etcd_server_quota_backend_bytes", 2_147_483_648.0),
        ("etcd_debugging_mvcc_current_revision", 1.0),
        ("etcd_debugging_mvcc_compact_revision", -1.0),
        ("etcd_disk_wal_fsync_duration_seconds_bucket{le=\"0.001\"}", 0.0),
        ("etcd_disk_wal_fsync_duration_seconds_bucket{le=\"8.192\"}", 0.0),
    ] {
        assert!((value(&scraped, sample) - expected).abs() < f64::EPSILON, "{sample}");
    }
    assert!(value(&scraped, "process_resident_memory_bytes") > 0.0);
    assert!(value(&scraped, "process_open_fds") > 0.0);
}

/// It was told as 0, and alerts that divide the size by it took the store for full.
#[tokio::test]
async fn a_store_without_a_quota_tells_a_negative_one() {
    let store = Store::start_with(|options| options.limits.quota_bytes = 0).await;
    let told = value(&scrape(&store).await, "etcd_server_quota_backend_bytes");
    assert!((told + 1.0).abs() < f64::EPSILON, "{told}");
    let mut clients = store.clients().await;
    let status = clients.maintenance.status(StatusRequest {}).await.unwrap().into_inner();
    assert_eq!(status.db_size_quota, -1);
}

#[tokio::test]
async fn what_was_done_is_counted() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    let put = PutRequest { key: "a".into(), ..Default::default() };
    let op = |op| RequestOp { request: Some(op) };
    let range = RangeRequest { key: "a".into(), ..Default::default() };
    clients.kv.put(put.clone()).await.unwrap();
    clients.kv.range(range.clone()).await.unwrap();
    let success = vec![op(Op::RequestPut(put)), op(Op::RequestRange(range))];
    clients.kv.txn(TxnRequest { success, ..Default::default() }).await.unwrap();
    clients.kv.range(RangeRequest::default()).await.unwrap_err();
    clients.lease.lease_grant(LeaseGrantRequest { id: 7, ttl: 100 }).await.unwrap();
    let asked = stream::iter([LeaseKeepAliveRequest { id: 7 }]);
    let kept = clients.lease.lease_keep_alive(asked).await.unwrap().into_inner();
    assert_eq!(kept.collect::<Vec<_>>().await.len(), 1);

    let scraped = scrape(&store).await;
    let kv = "grpc_service=\"etcdserverpb.KV\",grpc_type=\"unary\"";
    let lease = "grpc_service=\"etcdserverpb.Lease\",grpc_type=\"bidi_stream\"";
    for (sample, expected) in [
        ("etcd_mvcc_put_total".to_owned(), 2.0),
        ("etcd_mvcc_range_total".to_owned(), 2.0),
        ("etcd_mvcc_txn_total".to_owned(), 1.0),
        ("etcd_mvcc_delete_total".to_owned(), 0.0),
        ("etcd_debugging_mvcc_keys_total".to_owned(), 1.0),
        ("etcd_debugging_mvcc_current_revision".to_owned(), 3.0),
        ("etcd_debugging_lease_granted_total".to_owned(), 1.0),
        ("etcd_debugging_lease_renewed_total".to_owned(), 1.0),
        ("etcd_disk_wal_fsync_duration_seconds_count".to_owned(), 3.0),
        ("etcd_server_proposals_pending".to_owned(), 0.0),
        ("etcd_server_proposals_committed_total".to_owned(), 3.0),
        (format!("grpc_server_started_total{{grpc_method=\"Range\",{kv}}}"), 2.0),
        (format!("grpc_server_handled_total{{grpc_code=\"OK\",grpc_method=\"Range\",{kv}}}"), 1.0),
        (
            format!(
                "grpc_server_handled_total{{grpc_code=\"InvalidArgument\",grpc_method=\"Range\",{kv}}}"
            ),
            1.0,
        ),
        (
            format!(
                "grpc_server_handled_total{{grpc_code=\"OK\",grpc_method=\"LeaseKeepAlive\",{lease}}}"
            ),
            1.0,
        ),
        (format!("grpc_server_handling_seconds_count{{grpc_method=\"Range\",{kv}}}"), 2.0),
        (
            format!("grpc_server_handling_seconds_count{{grpc_method=\"LeaseKeepAlive\",{lease}}}"),
            1.0,
        ),
    ] {
        let counted = value(&scraped, &sample);
        assert!((counted - expected).abs() < f64::EPSILON, "{sample} is {counted}");
    }
    assert!(value(&scraped, "etcd_network_client_grpc_received_bytes_total") > 0.0);
    assert!(value(&scraped, "etcd_network_client_grpc_sent_bytes_total") > 0.0);
    let puts = format!("grpc_server_handling_seconds_sum{{grpc_method=\"Put\",{kv}}}");
    assert!(value(&scraped, &puts) > 0.0, "a put waits for the disk");
}

#[tokio::test]
async fn watches_are_counted_while_they_live() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    let create = WatchCreateRequest { key: "a".into(), ..Default::default() };
    let request = WatchRequest { request_union: Some(RequestUnion::CreateRequest(create)) };
    let requests = stream::iter([request.clone(), request]).chain(stream::pending());
    let mut answers = clients.watch.watch(requests).await.unwrap().into_inner();
    for _ in 0..2 {
        assert!(soon(answers.message()).await.unwrap().unwrap().created);
    }
    clients.kv.put(PutRequest { key: "a".into(), ..Default::default() }).await.unwrap();
    for _ in 0..2 {
        assert_eq!(soon(answers.message()).await.unwrap().unwrap().events.len(), 1);
    }
    let scraped = scrape(&store).await;
    for (sample, expected) in [
        ("etcd_debugging_mvcc_watcher_total", 2.0),
        ("etcd_debugging_mvcc_watch_stream_total", 1.0),
        ("etcd_debugging_mvcc_slow_watcher_total", 0.0),
        ("etcd_debugging_mvcc_events_total", 2.0),
    ] {
        assert!((value(&scraped, sample) - expected).abs() < f64::EPSILON, "{sample}");
    }
}
