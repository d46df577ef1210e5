//! From a command line and a file to a node: what is meant, what is refused, and in which words.

use std::path::Path;

use clap::Parser;
use expect_test::{Expect, expect};

use super::*;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    node: NodeArgs,
}

fn facts(is_root: bool) -> Facts {
    Facts {
        is_root,
        host_name: "machine".to_owned(),
        runtime_dir: Some("/run/windlass".into()),
        data_dir: Some("/var/lib/windlass".into()),
    }
}

fn node(line: &str, file: &str, is_root: bool) -> Result<Node, Error> {
    let line = std::iter::once("node").chain(line.split_whitespace());
    let typed = Line::try_parse_from(line).expect("a line that can be read").node;
    Node::of(file::below(typed, Path::new("node.toml"), file)?, &facts(is_root))
}

fn told(outcome: Result<Node, Error>) -> String {
    let node = match outcome {
        Ok(node) => node,
        Err(error) => {
            let cause = std::error::Error::source(&error);
            let cause = cause.map_or_else(String::new, |cause| format!(": {cause}"));
            return format!("error: {error}{cause}\nhint: {}\n", error.hint());
        }
    };
    let listener = |each: &Listener| {
        let tls = if each.tls.is_some() { "with TLS" } else { "plain" };
        format!("{:?} {tls}\n", each.address)
    };
    let listeners: String = node.listeners.iter().map(listener).collect();
    let warnings: String =
        node.warnings.iter().map(|words| format!("warning: {words}\n")).collect();
    let Node { name, data_dir, store, kind, .. } = node;
    format!("{name} in {}, {kind:?}, {store:?}\n{listeners}{warnings}", data_dir.display())
}

#[track_caller]
fn check(line: &str, expected: &Expect) {
    expected.assert_eq(&told(node(line, "", true)));
}

#[track_caller]
fn check_unprivileged(line: &str, expected: &Expect) {
    expected.assert_eq(&told(node(line, "", false)));
}

#[track_caller]
fn check_file(line: &str, file: &str, expected: &Expect) {
    expected.assert_eq(&told(node(line, file, true)));
}

#[test]
fn nothing_said_is_a_node_for_this_machine() {
    check(
        "",
        &expect![[r#"
            machine in /var/lib/windlass, Native, Own { listen: None }
            Unix("/run/windlass/node.sock") plain
        "#]],
    );
    check(
        "--name node2 --listen 127.0.0.2:8080 --store 127.0.0.1:2379,http://localhost:1 --data-dir n2 --insecure",
        &expect![[r#"
            node2 in n2, Native, Shared { endpoints: ["http://127.0.0.1:2379", "http://localhost:1"] }
            Tcp(127.0.0.2:8080) plain
        "#]],
    );
    check(
        "--listen 10.0.0.5:8080 --socket /tmp/s --cacert a --cert b --key c --store-listen 10.0.0.5:2379",
        &expect![[r#"
            machine in /var/lib/windlass, Native, Own { listen: Some(10.0.0.5:2379) }
            Unix("/tmp/s") plain
            Tcp(10.0.0.5:8080) with TLS
        "#]],
    );
}

#[test]
fn addresses_of_other_machines_need_certificates() {
    check(
        "--listen 10.0.0.5:8080",
        &expect![[r#"
            error: --listen 10.0.0.5:8080 is reached from other machines and needs certificates
            hint: give --cacert, --cert and --key; `windlass ca` makes the files
        "#]],
    );
    check(
        "--listen 10.0.0.5:8080 --insecure",
        &expect![[r#"
            error: --insecure cannot serve --listen 10.0.0.5:8080, which is reached from other machines
            hint: leave --insecure out, and give --cacert, --cert and --key
        "#]],
    );
    check(
        "--store-listen 0.0.0.0:2379 --insecure",
        &expect![[r#"
            error: --insecure cannot serve --store-listen 0.0.0.0:2379, which is reached from other machines
            hint: leave --insecure out, and give --cacert, --cert and --key
        "#]],
    );
    check(
        "--listen 127.0.0.1:8080",
        &expect![[r#"
            error: --listen 127.0.0.1:8080 would be served without certificates
            hint: give --cacert, --cert and --key, or --insecure to let every user of this machine in
        "#]],
    );
    check(
        "--listen 127.0.0.1:8080 --cert b",
        &expect![[r#"
            error: --cacert, --cert and --key must be given together
            hint: `windlass ca issue` makes the files
        "#]],
    );
    check(
        "--listen 127.0.0.1:8080 --cacert a --cert b --key c --insecure",
        &expect![[r#"
            error: --insecure and certificates exclude each other
            hint: leave one of them out
        "#]],
    );
    check(
        "--listen 0.0.0.0:8080 --cacert a --cert b --key c",
        &expect![[r#"
            error: --listen 0.0.0.0:8080 is no address that others could connect to
            hint: name the node as others reach it with --advertise
        "#]],
    );
}

#[test]
fn a_store_on_another_machine_needs_certificates() {
    check(
        "--store http://10.0.0.4:2379",
        &expect![[r#"
            error: --store http://10.0.0.4:2379 is on another machine and would be spoken to unencrypted
            hint: write `https://`, and give --cacert, --cert and --key; `windlass ca` makes the files
        "#]],
    );
    check(
        "--store https://10.0.0.4:2379 --listen 127.0.0.1:1 --insecure",
        &expect![[r#"
            error: --store https://10.0.0.4:2379 needs certificates
            hint: give --cacert, --cert and --key; `windlass ca` makes the files
        "#]],
    );
    check(
        "--store 10.0.0.4:2379,10.0.0.5:2379 --cacert a --cert b --key c",
        &expect![[r#"
            machine in /var/lib/windlass, Native, Shared { endpoints: ["https://10.0.0.4:2379", "https://10.0.0.5:2379"] }
            Unix("/run/windlass/node.sock") plain
        "#]],
    );
}

#[test]
fn without_root_plain_processes_serve_this_machine_alone() {
    check_unprivileged(
        "",
        &expect![[r#"
            machine in /var/lib/windlass, Process, Own { listen: None }
            Unix("/run/windlass/node.sock") plain
            warning: tasks run as plain processes: no isolation, and no limits are enforced
        "#]],
    );
    let public = "--listen 10.0.0.5:8080 --cacert a --cert b --key c";
    check_unprivileged(
        public,
        &expect![[r#"
            error: without root, tasks would run as plain processes, and other machines could start them
            hint: use sudo, or say --runtime process if that is what you want
        "#]],
    );
    check_unprivileged(
        &format!("{public} --runtime process"),
        &expect![[r#"
            machine in /var/lib/windlass, Process, Own { listen: None }
            Tcp(10.0.0.5:8080) with TLS
            warning: tasks run as plain processes: no isolation, and no limits are enforced
        "#]],
    );
    check_unprivileged(
        "--runtime native",
        &expect![[r#"
            error: --runtime native needs root
            hint: use sudo, or --runtime process
        "#]],
    );
}

#[test]
fn a_file_says_what_was_not_typed() {
    check_file(
        "--name typed",
        "name = \"file\"\ndata-dir = \"n\"\nlisten = \"127.0.0.1:1\"\ninsecure = true\n",
        &expect![[r#"
            typed in n, Native, Own { listen: None }
            Tcp(127.0.0.1:1) plain
        "#]],
    );
    check_file(
        "--store-listen 127.0.0.1:2 --insecure",
        "store = [\"http://a:1\"]\nruntime = \"process\"\nlease-ttl = \"30s\"\n",
        &expect![[r#"
            machine in /var/lib/windlass, Process, Own { listen: Some(127.0.0.1:2) }
            Unix("/run/windlass/node.sock") plain
            warning: tasks run as plain processes: no isolation, and no limits are enforced
        "#]],
    );
}

#[test]
fn mistakes_in_a_file_are_named_with_their_line() {
    check_file(
        "",
        "name = \"a\"\n\nlistn = \"127.0.0.1:1\"\n",
        &expect![[r#"
            error: node.toml:3: unknown key `listn`
            hint: did you mean `listen`?
        "#]],
    );
    check_file(
        "",
        "# a comment\n[tasks]\nname = \"a\"\n",
        &expect![[r#"
            error: node.toml:2: unknown key `tasks`
            hint: `windlass node --help` lists every flag; the keys of a file have the same names
        "#]],
    );
    check_file(
        "",
        "name = \"a\"\nmax-queued = \"many\"\n",
        &expect![[r#"
            error: node.toml:2: invalid type: string "many", expected usize
            hint: `windlass node --help` lists every flag; the keys of a file have the same names
        "#]],
    );
    check_file(
        "",
        "lease-ttl = \"soon\"\n",
        &expect![[r#"
            error: node.toml: `lease-ttl` is `soon`, which means nothing
            hint: write `30d`, `10m` or `1m30s`
        "#]],
    );
}

#[test]
fn values_are_within_their_bounds() {
    check(
        "--lease-ttl 1s",
        &expect![[r#"
            error: --lease-ttl: a lease of 1 s is not between 5 s and 300 s
            hint: `windlass node --help` lists every flag; the keys of a file have the same names
        "#]],
    );
    check(
        "--max-waiters 0",
        &expect![[r#"
            error: a bound is wrong: waiters_max is 0; at least 1 is needed, and at most 1048576 is allowed
            hint: `windlass node --help` lists every flag; the keys of a file have the same names
        "#]],
    );
    check(
        "--rootfs a=/x --rootfs a=/y",
        &expect![[r#"
            error: --rootfs: `a` is given twice
            hint: write `--rootfs busybox=/srv/busybox`
        "#]],
    );
    let named = node("--rootfs /x --rootfs b=/y", "", true).unwrap().roots;
    assert_eq!(named.into_keys().collect::<Vec<_>>(), ["b", "default"]);
}

#[test]
fn keys_and_data_are_hidden_from_tasks() {
    let node = node("--cacert a --cert b --key c --data-dir d --config e", "", true).unwrap();
    let hidden: Vec<_> = node.host_view.hidden.iter().map(|path| path.to_str().unwrap()).collect();
    assert_eq!(hidden, ["e", "b", "c", "d"]);
}

/// Each of these was taken, and then failed every task that was given to the node.
#[test]
fn a_host_view_is_put_together_from_plain_paths() {
    for wrong in ["usr", "/", "/usr/../root"] {
        let refused = node(&format!("--host-view {wrong}"), "", true);
        assert!(matches!(refused, Err(Error::HostView { .. })), "{wrong}: {refused:?}");
    }
    let view = node("--host-view /usr/lib,/usr --host-view /usr", "", true).unwrap().host_view;
    assert_eq!(view.binds, [Path::new("/usr"), Path::new("/usr/lib")]);
}
