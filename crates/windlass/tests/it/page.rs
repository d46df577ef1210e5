//! The page that `windlass up` shows in a browser.

use serde_json::{Value, json};

use crate::running::{Running, ask, get, succeed, until, windlass};

#[test]
fn the_page_shows_the_store_and_a_task_that_ended() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(folder.path());
    let socket = format!("unix://{}", folder.path().join("node.sock").display());
    succeed(&mut windlass(["run", "-N", &socket, "--name", "<b>", "--", "true"]));
    let status = status(&running);
    assert!(status["tasks"]["known"].is_object(), "{status}");
    assert!(status["store"]["known"]["revision"].as_i64().unwrap() > 1, "{status}");
    let task = until(|| ended(&running));
    let told = json!([task["name"], task["state"], task["exit_code"]]);
    assert_eq!(told, json!(["<b>", "complete", 0]));
    let page = get(&running.address, "/");
    assert!(page.contains("content-type: text/html; charset=utf-8"), "{page}");
    assert!(page.contains("content-security-policy: default-src 'none';"), "{page}");
    assert!(page.contains("&lt;b&gt;") && !page.contains("<b>"), "{page}");
}

/// Every page that was looked at on this machine could run commands on it: a browser sends what pages
/// post, and the store's keys are tasks.
#[test]
fn pages_of_others_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(folder.path());
    let address = &running.address;
    let post = |headers: &str| {
        let head = format!("POST /v3/kv/put HTTP/1.1\r\n{headers}\r\nContent-Length: 14");
        ask(address, &head, r#"{"key":"YQ=="}"#)
    };
    let foreign = post(&format!("Host: {address}\r\nOrigin: http://a.example"));
    assert!(foreign.starts_with("HTTP/1.1 403"), "{foreign}");
    let rebound = post("Host: a.example");
    assert!(rebound.starts_with("HTTP/1.1 421"), "{rebound}");
    for host in ["localhost", "127.0.0.1:1", "[::1]:1"] {
        let own = post(&format!("Host: {host}"));
        assert!(own.starts_with("HTTP/1.1 200"), "{own}");
    }
}

#[test]
fn only_up_has_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let store = Running::start_store(folder.path());
    for path in ["/", "/status.json"] {
        assert!(get(&store.address, path).starts_with("HTTP/1.1 404"));
    }
}

fn status(running: &Running) -> Value {
    let answer = get(&running.address, "/status.json");
    let (_head, body) = answer.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap()
}

fn ended(running: &Running) -> Option<Value> {
    status(running)["tasks"]["known"]["ended"].get(0).cloned()
}
