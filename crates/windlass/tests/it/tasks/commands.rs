//! `windlass task` and `windlass nodes`.

use super::node::{Node, folder};
use crate::running::until;

#[test]
fn a_detached_task_is_waited_for_and_read() {
    let (_folder, path) = folder();
    let node = Node::start(&path);
    let id = node.submit(&["--name", "greeter", "--label", "team=red", "--", "echo", "hello"]);
    let short = &id[..8];
    let waited = node.ask(&["task", "wait", short]);
    assert_eq!(waited.code, Some(0), "{waited:?}");
    assert_eq!(node.ask(&["task", "logs", short]).stdout, "hello\n");
    assert_eq!(node.ask(&["task", "logs", "-f", &id]).stdout, "hello\n");
    let status = node.json(&["task", "status", short]);
    assert_eq!((&status["state"], &status["exit_code"]), (&"complete".into(), &0.into()));
    assert_eq!(status["command"], serde_json::json!(["echo", "hello"]));
    let text = node.ask(&["task", "status", short]).stdout;
    assert!(text.contains("complete, exit code 0") && text.contains("1 on node1"), "{text}");
    let listed = node.json(&["task", "list", "--label", "team=red"]);
    assert_eq!(listed[0]["id"], *id);
    assert_eq!(node.json(&["task", "list", "--label", "team=blue"]), serde_json::json!([]));
    let table = node.ask(&["task", "list", "--on", "node1"]).stdout;
    assert!(table.starts_with("ID") && table.contains("greeter"), "{table}");
    assert_eq!(node.ask(&["task", "list"]).stderr, "", "nothing is left out");
    node.submit(&["--", "true"]);
    let some = node.ask(&["task", "list", "--limit", "1"]);
    assert!(some.stderr.contains("there are more; --limit"), "{some:?}");
}

/// A node has another id after each start: what it had run before was on no node any more.
#[test]
fn what_a_node_ran_before_it_was_started_again_is_listed_on_it() {
    let (_folder, path) = folder();
    let node = Node::start(&path);
    let id = node.submit(&["--", "true"]);
    assert_eq!(node.ask(&["task", "wait", &id]).code, Some(0));
    node.stop();
    let node = Node::start(&path);
    until(|| node.json(&["nodes"]).as_array().is_some_and(|nodes| nodes.len() == 1).then_some(()));
    let listed = node.json(&["task", "list", "--on", "node1"]);
    assert_eq!(listed[0]["id"], *id);
}

#[test]
fn tasks_are_followed_canceled_and_removed() {
    let (_folder, path) = folder();
    let node = Node::start(&path);
    let id = node.submit(&["--grace", "0s", "--", "sh", "-c", "echo begun; sleep 60"]);
    let mut follow = node.command(&["task", "logs", "-f", &id]);
    let follow = follow.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let canceled = node.json(&["task", "cancel", &id]);
    assert_eq!(canceled[0]["state"], "canceled");
    let followed = follow.wait_with_output().unwrap();
    assert!(followed.status.success());
    assert_eq!(node.ask(&["task", "cancel", &id]).code, Some(0), "repeating it is success");
    let waited = node.ask(&["task", "wait", &id]);
    assert_eq!(waited.code, Some(1), "it did not end well: {waited:?}");
    assert!(node.ask(&["task", "fsck"]).stdout.contains("everything holds"));
    // What ended within this second is not older than nothing.
    let removed = until(|| {
        node.json(&["task", "gc", "--older-than", "0s"])["deleted"].as_u64().filter(|n| *n > 0)
    });
    assert_eq!(removed, 1);
    assert_eq!(node.ask(&["task", "status", &id]).code, Some(1));
}

#[test]
fn a_task_that_fits_nowhere_is_explained() {
    let (_folder, path) = folder();
    let node = Node::start(&path);
    let id = node.submit(&["--memory", "900TiB", "--", "true"]);
    let explained = until(|| {
        let explained = node.ask(&["task", "explain", &id]);
        (explained.code == Some(0)).then_some(explained.stdout)
    });
    assert!(explained.contains("UNSATISFIABLE"), "{explained}");
    assert!(explained.contains("of memory, the task needs"), "{explained}");
    let cut_short = node.ask(&["task", "wait", "--timeout", "100ms", &id]);
    assert_eq!(cut_short.code, Some(1), "{cut_short:?}");
}

#[test]
fn wrong_names_are_told_apart() {
    let (_folder, path) = folder();
    let node = Node::start(&path);
    for (words, code, told) in [
        (&["task", "status", "abc"][..], 2, "fewer than 8"),
        (&["task", "status", "00000000"], 1, "there is no task"),
        (&["task", "status", "0190a7e6-8c00-7d3e-8000-00000000002a"], 1, "there is no task"),
        (&["task", "list", "--on", "node9"], 1, "there is no node"),
        (&["nodes", "drain", "node9"], 1, "there is no node"),
    ] {
        let ended = node.ask(words);
        assert_eq!(ended.code, Some(code), "{words:?}: {ended:?}");
        assert!(ended.stderr.contains(told), "{words:?}: {ended:?}");
    }
}

#[test]
fn nodes_say_what_they_enforce_and_drain() {
    let (_folder, path) = folder();
    let node = Node::start(&path);
    assert!(node.log.contains("no limits are enforced"), "{}", node.log);
    assert_eq!(node.ask(&["run", "--", "true"]).code, Some(0), "it is registered by now");
    let nodes = node.json(&["nodes"]);
    assert_eq!((&nodes[0]["name"], &nodes[0]["runtime"]), (&"node1".into(), &"process".into()));
    assert_eq!(nodes[0]["limits_enforced"], false);
    let table = node.ask(&["nodes"]).stdout;
    assert!(table.contains("not enforced") && table.contains("ready"), "{table}");
    let drained = node.json(&["nodes", "drain", "node1"]);
    assert_eq!(drained, serde_json::json!({ "node": "node1", "draining": true }));
    until(|| {
        let nodes = node.json(&["nodes"]);
        (nodes == serde_json::json!([])).then_some(())
    });
    assert!(node.stop().contains("stopped"));
}

/// The first that was refused kept all that followed from being canceled.
#[test]
fn a_task_that_cannot_be_canceled_is_nothing_to_the_others() {
    let (_folder, path) = folder();
    let node = Node::start(&path);
    let ended = node.submit(&["--", "true"]);
    assert_eq!(node.ask(&["task", "wait", &ended]).code, Some(0));
    let runs = node.submit(&["--", "sleep", "600"]);
    let said = node.ask(&["task", "cancel", &ended, "00000000", &runs]);
    assert_eq!(said.code, Some(1), "{said:?}");
    let told = [format!("{ended} is complete already"), "no task `00000000`".to_owned()];
    assert!(told.iter().all(|words| said.stderr.contains(words)), "{said:?}");
    assert!(said.stdout.contains("canceled"), "{said:?}");
    assert_eq!(node.json(&["task", "status", &runs])["state"], "canceled");
}
