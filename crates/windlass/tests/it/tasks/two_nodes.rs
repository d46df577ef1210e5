//! The example of the first design: two nodes at one store, and a task given to either.

use super::node::{Node, ended, folder, node};

/// A port of the first address that is free on all addresses of this machine, as far as anybody knows.
fn free_port(ip: &str) -> u16 {
    std::net::TcpListener::bind((ip, 0)).unwrap().local_addr().unwrap().port()
}

#[test]
fn two_node_example() {
    let (_folder, path) = folder();
    let store = format!("127.0.0.1:{}", free_port("127.0.0.1"));
    let first = format!("127.0.0.1:{}", free_port("127.0.0.1"));
    let second = format!("127.0.0.2:{}", free_port("127.0.0.2"));
    let mut node1 = node(&path.join("n1"));
    node1.args(["--name", "node1", "--listen", &first, "--store-listen", &store, "--insecure"]);
    let node1 = Node::spawn(&mut node1, first);
    let mut node2 = node(&path.join("n2"));
    let url = format!("http://{store}");
    node2.args(["--name", "node2", "--listen", &second, "--store", &url, "--insecure"]);
    let node2 = Node::spawn(&mut node2, second.clone());

    let mut run = crate::running::windlass(["run", "-N", &second, "ls", "--", "-l"]);
    let listing = ended(&mut run);
    assert_eq!(listing.code, Some(0), "{listing:?}");
    assert!(listing.stdout.contains("usr"), "{listing:?}");

    // Every node answers for all others, wherever a task ran.
    let ids: Vec<String> =
        (0..8).map(|number| node1.submit(&["--", "echo", &format!("task {number}")])).collect();
    for (number, id) in ids.iter().enumerate() {
        assert_eq!(node2.ask(&["task", "wait", id]).code, Some(0));
        for node in [&node1, &node2] {
            let logs = node.ask(&["task", "logs", id]);
            assert_eq!(logs.stdout, format!("task {number}\n"), "{logs:?}");
        }
    }
    let nodes = node1.json(&["nodes"]);
    let names: Vec<&str> =
        nodes.as_array().unwrap().iter().map(|node| node["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["node1", "node2"]);
    // The store of the first ends with it.
    node2.stop();
    node1.stop();
}
