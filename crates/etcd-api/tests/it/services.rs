//! The names under which clients call; a gRPC path is `/<service>/<method>`.

use etcd_api::etcdserverpb::{
    auth_server, cluster_server, kv_server, lease_server, maintenance_server, watch_server,
};
use etcd_api::health::health_server;
use etcd_api::v3electionpb::election_server;
use etcd_api::v3lockpb::lock_server;

#[test]
fn services_have_the_names_clients_call() {
    let names = [
        kv_server::SERVICE_NAME,
        watch_server::SERVICE_NAME,
        lease_server::SERVICE_NAME,
        cluster_server::SERVICE_NAME,
        maintenance_server::SERVICE_NAME,
        auth_server::SERVICE_NAME,
        lock_server::SERVICE_NAME,
        election_server::SERVICE_NAME,
        health_server::SERVICE_NAME,
    ];
    let expected = [
        "etcdserverpb.KV",
        "etcdserverpb.Watch",
        "etcdserverpb.Lease",
        "etcdserverpb.Cluster",
        "etcdserverpb.Maintenance",
        "etcdserverpb.Auth",
        "v3lockpb.Lock",
        "v3electionpb.Election",
        "grpc.health.v1.Health",
    ];
    assert_eq!(names, expected);
}
