//! A cluster with certificates: made by `windlass ca`, asked for by every node.

use std::path::Path;

use super::node::{Ended, Node, ended, folder, node};
use crate::running::{logged_address, windlass};

fn ca(dir: &Path, words: &[&str]) -> Ended {
    let mut command = windlass(["ca"]);
    command.args(words).arg("--dir").arg(dir);
    ended(&mut command)
}

fn identity(dir: &Path, name: &str) -> Vec<String> {
    let file = |name: &str| dir.join(name).display().to_string();
    let (cert, key) = (format!("{name}.crt"), format!("{name}.key"));
    [("--cacert", "ca.crt"), ("--cert", &cert), ("--key", &key)]
        .into_iter()
        .flat_map(|(flag, name)| [flag.to_owned(), file(name)])
        .collect()
}

/// A node went to its own store by the address that others have it by, and never took a task if its
/// certificate did not name that address.
#[test]
fn a_node_needs_no_name_for_its_own_store() {
    let (_folder, path) = folder();
    let dir = path.join("ca");
    assert_eq!(ca(&dir, &["init"]).code, Some(0));
    assert_eq!(ca(&dir, &["issue", "--node", "node1", "--host", "node1.example"]).code, Some(0));
    let socket = path.join("node.sock");
    let mut command = node(&path.join("data"));
    command.args(["--store-listen", "0.0.0.0:0", "--runtime", "process"]);
    command.arg("--socket").arg(&socket).args(identity(&dir, "node1"));
    let node = Node::spawn(&mut command, format!("unix://{}", socket.display()));
    assert!(node.log.contains("0.0.0.0:"), "others have a port: {}", node.log);
    let id = node.submit(&["--", "true"]);
    assert_eq!(node.ask(&["task", "wait", "--timeout", "30s", &id]).code, Some(0));
    node.stop();
}

#[test]
fn certificates_of_the_authority_are_needed_and_enough() {
    let (_folder, path) = folder();
    let dir = path.join("ca");
    assert_eq!(ca(&dir, &["init"]).code, Some(0));
    assert_eq!(ca(&dir, &["issue", "--node", "node1"]).code, Some(0));
    let issued = ca(&dir, &["issue", "--client", "alice"]);
    assert!(issued.stdout.contains("alice.crt") && issued.stdout.contains("alice.key"));
    assert_eq!(ca(&dir, &["issue", "--client", "alice"]).code, Some(1), "nothing is replaced");

    let mut command = node(&path.join("data"));
    command.args(["--name", "node1", "--listen", "127.0.0.1:0", "--runtime", "process"]);
    command.args(identity(&dir, "node1"));
    let node = Node::spawn(&mut command, String::new());
    let (address, _) = logged_address(&node.log).unwrap();

    let mut run = windlass(["run", "-N", address]);
    run.args(identity(&dir, "alice")).args(["--", "echo", "hello"]);
    let hello = ended(&mut run);
    assert_eq!((hello.code, &*hello.stdout), (Some(0), "hello\n"), "{hello:?}");

    let plain = ended(windlass(["nodes", "-N", address]).args(["-o", "json"]));
    assert_ne!(plain.code, Some(0), "plain text is not understood: {plain:?}");
    let mut list = windlass(["task", "list", "-N", address, "-o", "json"]);
    let tasks = ended(list.args(identity(&dir, "alice"))).stdout;
    assert!(tasks.contains("\"submitted_by\": \"alice\""), "{tasks}");
}
