//! Faults of an earlier implementation of the same design that only show in a whole process.

use std::{collections::HashSet, fs, os::unix::fs::PermissionsExt, path::Path};

use super::node::{Node, ended, folder, node};

/// As `/proc/net/tcp` writes that a socket waits for connections.
const LISTENING: &str = "0A";

/// The store of a node listened on every address of the machine, for everybody.
#[test]
fn reg09_store_client_port_not_public() {
    let (_folder, path) = folder();
    let running = Node::start(&path);
    assert_eq!(ports(running.id()), 0, "nobody asked for a port");
    for socket in sockets_below(&path) {
        let mode = fs::metadata(&socket).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{} is for its owner alone", socket.display());
    }
    running.stop();

    let mut public = node(&path.join("other"));
    public.args(["--runtime", "process", "--store-listen", "0.0.0.0:0", "--insecure"]);
    let refused = ended(&mut public);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("0.0.0.0:0"), "it says which address: {refused:?}");
}

/// The environment and the output of every task could be read by every user of the machine.
#[test]
fn data_of_a_node_is_for_nobody_else() {
    let (_folder, path) = folder();
    let running = Node::start(&path);
    running.ask(&["run", "--env", "TOKEN=secret", "--", "true"]);
    running.stop();
    let mode = |name: &str| fs::metadata(path.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(["data", "data/store", "data/tasks"].map(mode), [0o700; 3]);
}

/// How many TCP ports a process listens on.
fn ports(process: u32) -> usize {
    let folder = Path::new("/proc").join(process.to_string());
    let files = fs::read_dir(folder.join("fd")).unwrap().flatten();
    let links = files.filter_map(|file| fs::read_link(file.path()).ok());
    let own: HashSet<String> = links.map(|link| link.to_string_lossy().into_owned()).collect();
    let tables = ["net/tcp", "net/tcp6"].map(|table| fs::read_to_string(folder.join(table)));
    let lines = tables.iter().flatten().flat_map(|table| table.lines());
    let listens = |line: &&str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields[3] == LISTENING && own.contains(&format!("socket:[{}]", fields[9]))
    };
    lines.filter(|line| line.contains(':')).filter(listens).count()
}

fn sockets_below(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "sock") {
                found.push(path);
            }
        }
    }
    assert!(!found.is_empty(), "a node has a socket");
    found
}
