//! The JSON gateway and the other HTTP endpoints, on etcd and on windlass: the same answers.

use anyhow::{Result, ensure};
use e2e::http;
use e2e::scene::{Scene, suite};
use e2e::store::{Lane, Store, StoreOptions};
use serde_json::{Value, json};

/// Fields that tell of one member and its disk.
const OWN_FIELDS: [&str; 13] = [
    "cluster_id",
    "member_id",
    "raft_term",
    "dbSize",
    "dbSizeInUse",
    "leader",
    "raftIndex",
    "raftTerm",
    "raftAppliedIndex",
    "name",
    "peerURLs",
    "clientURLs",
    "token",
];

/// What is posted, in order. Bytes are base64: `YQ==` is `a`. Names of enums that nobody knows are
/// taken for the default.
fn requests() -> Vec<(&'static str, Value)> {
    vec![
        ("/v3/kv/put", json!({"key": "YQ==", "value": "MQ=="})),
        ("/v3/kv/put", json!({"key": "YQ==", "value": "Mg==", "prev_kv": true})),
        ("/v3/kv/put", json!({"key": "", "value": "Mg=="})),
        ("/v3/kv/put", json!({"key": "not base64!"})),
        ("/v3/kv/put", json!({"unknown": 1, "key": "Yg=="})),
        ("/v3/kv/range", json!({"key": "YQ=="})),
        ("/v3/kv/range", json!({"key": "AA==", "range_end": "AA==", "limit": "1"})),
        (
            "/v3/kv/range",
            json!({"key": "AA==", "range_end": "AA==", "sort_order": "DESCEND", "sort_target": "MOD"}),
        ),
        ("/v3/kv/range", json!({"key": "YQ==", "sort_order": "NIX"})),
        ("/v3/kv/range", json!({"key": "YQ==", "revision": "99"})),
        (
            "/v3/kv/txn",
            json!({
                "compare": [{"target": "VERSION", "key": "YQ==", "version": "2", "result": "EQUAL"}],
                "success": [{"request_put": {"key": "Yw==", "value": "Mw=="}}, {"request_range": {"key": "YQ=="}}],
                "failure": [{"request_delete_range": {"key": "YQ=="}}],
            }),
        ),
        ("/v3/kv/deleterange", json!({"key": "Yw==", "prev_kv": true})),
        ("/v3/kv/compaction", json!({"revision": "3"})),
        ("/v3/kv/compaction", json!({"revision": "3"})),
        ("/v3/lease/grant", json!({"TTL": "600", "ID": "77"})),
        ("/v3/lease/grant", json!({"TTL": "600", "ID": "77"})),
        ("/v3/lease/keepalive", json!({"ID": "77"})),
        ("/v3/lease/leases", json!({})),
        ("/v3/lease/timetolive", json!({"ID": "78"})),
        ("/v3/lease/revoke", json!({"ID": "77"})),
        ("/v3/kv/lease/revoke", json!({"ID": "77"})),
        ("/v3/maintenance/status", json!({})),
        ("/v3/maintenance/alarm", json!({"action": "GET"})),
        ("/v3/maintenance/hashkv", json!({"revision": "0"})),
        ("/v3/cluster/member/list", json!({})),
        ("/v3/auth/status", json!({})),
        ("/v3/auth/user/add", json!({"name": "root", "password": "secret"})),
        ("/v3/auth/user/get", json!({"name": "nobody"})),
        ("/v3/auth/role/add", json!({"name": "root"})),
        ("/v3/auth/user/grant", json!({"user": "root", "role": "root"})),
        ("/v3/auth/enable", json!({})),
        ("/v3/kv/range", json!({"key": "YQ=="})),
        ("/v3/auth/authenticate", json!({"name": "root", "password": "wrong"})),
        ("/v3/auth/authenticate", json!({"name": "root", "password": "secret"})),
        ("/v3/nothing/here", json!({})),
    ]
}

const PAGES: [&str; 7] = [
    "/version",
    "/health",
    "/health?serializable=true",
    "/livez",
    "/readyz",
    "/readyz?verbose",
    "/nothing",
];

#[test]
fn http_answers_are_the_same() {
    let needs = [Lane::Etcd.asset(), Lane::Windlass.asset()];
    suite("http_answers_are_the_same", &needs, async |scene| {
        let etcd = start(scene, Lane::Etcd).await?;
        let windlass = start(scene, Lane::Windlass).await?;
        let mut differences = Vec::new();
        for page in PAGES {
            let (left, right) = (get(&etcd, page).await?, get(&windlass, page).await?);
            if left != right {
                differences.push(format!("GET {page}\netcd:     {left}\nwindlass: {right}"));
            }
        }
        for (path, body) in requests() {
            let left = post(&etcd, path, &body).await?;
            let right = post(&windlass, path, &body).await?;
            if left != right {
                differences
                    .push(format!("POST {path} {body}\netcd:     {left}\nwindlass: {right}"));
            }
        }
        ensure!(differences.is_empty(), "{}", differences.join("\n"));
        Ok(())
    });
}

#[test]
fn a_watch_through_the_gateway_is_the_same() {
    let needs = [Lane::Etcd.asset(), Lane::Windlass.asset()];
    suite("a_watch_through_the_gateway_is_the_same", &needs, async |scene| {
        let left = watch(&start(scene, Lane::Etcd).await?).await?;
        let right = watch(&start(scene, Lane::Windlass).await?).await?;
        ensure!(left == right, "etcd:     {left:?}\nwindlass: {right:?}");
        Ok(())
    });
}

async fn start(scene: &Scene, lane: Lane) -> Result<Store> {
    let options = StoreOptions::new(lane, &format!("{lane:?}").to_lowercase())
        .flags(lane.without_sync())
        .flags(["--bcrypt-cost", "4"]);
    Store::start(scene, &options).await
}

async fn get(store: &Store, page: &str) -> Result<String> {
    let answer = http::get(store.port(), page).await?;
    // etcd names its checks in whatever order its map has them.
    let mut lines: Vec<&str> = answer.body.lines().collect();
    lines.sort_unstable();
    Ok(format!("{} {}", answer.status, lines.join("\n")))
}

async fn post(store: &Store, path: &str, body: &Value) -> Result<String> {
    let answer = http::post(store.port(), path, body).await?;
    let text = match serde_json::from_str::<Value>(&answer.body) {
        Ok(mut value) => {
            strip(&mut value);
            blur_parse_error(&mut value);
            value.to_string()
        }
        Err(_) => answer.body,
    };
    Ok(format!("{} {text}", answer.status))
}

/// What a JSON parser says of nonsense is its own affair; etcd's varies its white space on purpose.
fn blur_parse_error(value: &mut Value) {
    if value["message"].as_str().is_some_and(|text| text.starts_with("proto:")) {
        value["message"] = json!("proto: …");
    }
}

/// The first two lines of a watch: that it was created, and one event.
async fn watch(store: &Store) -> Result<Vec<Option<Value>>> {
    let create = json!({"create_request": {"key": "YQ==", "prev_kv": true}});
    let mut lines = http::post_for_lines(store.port(), "/v3/watch", &create).await?;
    let mut seen = vec![lines.next().await?];
    let put = json!({"key": "YQ==", "value": "MQ=="});
    ensure!(http::post(store.port(), "/v3/kv/put", &put).await?.status == 200, "the put failed");
    seen.push(lines.next().await?);
    seen.iter_mut().flatten().for_each(strip);
    Ok(seen)
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !OWN_FIELDS.contains(&name.as_str()));
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        // Nothing the requests name is as large as the numbers of members.
        Value::String(text) if text.len() > 12 && text.parse::<u64>().is_ok() => {
            "a member".clone_into(text);
        }
        _ => {}
    }
}
