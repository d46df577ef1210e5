//! etcdctl's commands, run on etcd and on windlass: the same words must come out.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::assets::Asset;
use e2e::scene::{Scene, suite};
use e2e::store::{Lane, Store, StoreOptions};
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::time::timeout;

/// One command per line; `{lease}` is the lease granted last, `<<` hands on standard input with
/// `|` for the end of a line.
const SCRIPT: &str = r#"
put a 1
put a 2 --prev-kv
put b "" -w json
put c 3 --ignore-value
get a
get a -w json
get a -w fields
get "" --prefix --keys-only
get a z --count-only -w fields
get a --rev 2
get a --rev 99
get "" --from-key --sort-by MODIFY --order DESCEND
get a --print-value-only
get nothing
put
get
del a --prev-kv
del nothing
del "" --prefix -w json
txn << mod("x") = "0"||put x 1|put y 2||get x||
txn << value("x") = "1"||get x|del y||put z 9||
txn << ver("x") > "5"||get x||get y --prefix||
txn << nonsense("x") = "1"|||
compaction 3
compaction 3
compaction 99
get x --rev 2
lease grant 600
put leased 1 --lease {lease}
lease timetolive {lease}
lease timetolive {lease} --keys
lease list
lease keep-alive {lease} --once
get leased -w json
lease revoke {lease}
lease revoke {lease}
get leased
lease timetolive 1234
member list -w json
member remove 1234
member add bad --peer-urls nonsense
member promote 1234
endpoint health
endpoint status -w json
endpoint hashkv -w json
alarm list
alarm disarm
defrag
move-leader 1234
downgrade validate 3.1.0
lock here true
version
user add root:secret
user add ann:pass
user add ann:pass
user list
user get ann
user get nobody
user passwd nobody --interactive=false << x|
role add root
role add reader
role grant-permission reader read a c
role grant-permission reader readwrite k --prefix
role grant-permission reader write m --from-key
role get reader
role list
user grant-role root root
user grant-role ann reader
user grant-role ann missing
auth status
auth enable
auth status
get a
get a --user root:secret
get a --user root:wrong
get a --user ann:pass
put a 1 --user ann:pass
put k1 1 --user ann:pass
get "" --prefix --user ann:pass
compaction 6 --user ann:pass
role revoke-permission reader a c --user root:secret
get a --user ann:pass
user revoke-role ann reader --user root:secret
user delete ann --user root:secret
role delete reader --user root:secret
auth disable --user root:secret
get a
"#;

/// No command of the script waits for anything.
const COMMAND_WAIT: Duration = Duration::from_secs(20);

/// Stands for the lease until one was granted.
const NO_LEASE: &str = "{no lease yet}";

/// Fields of JSON output that tell of one member and its disk.
const OWN_FIELDS: [&str; 16] = [
    "cluster_id",
    "member_id",
    "raft_term",
    "Endpoint",
    "dbSize",
    "dbSizeInUse",
    "leader",
    "raftIndex",
    "raftTerm",
    "raftAppliedIndex",
    "ID",
    "name",
    "peerURLs",
    "clientURLs",
    "lease",
    "hash",
];

#[test]
fn etcdctl_prints_the_same() {
    let needs = [Asset::Etcdctl, Lane::Etcd.asset(), Lane::Windlass.asset()];
    suite("etcdctl_prints_the_same", &needs, async |scene| {
        let mut sides = [start(scene, Lane::Etcd).await?, start(scene, Lane::Windlass).await?];
        let mut differences = Vec::new();
        for line in SCRIPT.lines().filter(|line| !line.is_empty()) {
            let [etcd, windlass] = &mut sides;
            let (left, right) = (etcd.run(line).await?, windlass.run(line).await?);
            if left != right {
                differences.push(format!("etcdctl {line}\netcd:     {left}\nwindlass: {right}"));
            }
        }
        ensure!(differences.is_empty(), "{}", differences.join("\n"));
        Ok(())
    });
}

struct Side {
    store: Store,
    program: PathBuf,
    /// The lease granted last, as etcdctl prints it.
    lease: String,
}

async fn start(scene: &Scene, lane: Lane) -> Result<Side> {
    let options = StoreOptions::new(lane, &format!("{lane:?}").to_lowercase())
        .flags(lane.without_sync())
        .flags(["--bcrypt-cost", "4"]);
    let store = Store::start(scene, &options).await?;
    Ok(Side { store, program: scene.program(Asset::Etcdctl)?, lease: NO_LEASE.to_owned() })
}

/// Runs one command with this on its standard input.
pub(super) async fn etcdctl(
    program: &Path,
    store: &Store,
    arguments: &[impl AsRef<OsStr>],
    input: &str,
) -> Result<Output> {
    let mut child = Command::new(program)
        .args(["--endpoints", &store.endpoint()])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("start etcdctl")?;
    let mut stdin = child.stdin.take().context("etcdctl has a standard input")?;
    // A command that does not read its input may end before it is written.
    drop(stdin.write_all(input.as_bytes()).await);
    drop(stdin);
    let output = timeout(COMMAND_WAIT, child.wait_with_output()).await;
    output.context("etcdctl does not end")?.context("wait for etcdctl")
}

// === impl Side ===

impl Side {
    /// Runs one line and returns what it printed, in a form that can be compared.
    async fn run(&mut self, line: &str) -> Result<String> {
        let (command, input) = line.split_once(" << ").unwrap_or((line, ""));
        let command = command.replace("{lease}", &self.lease);
        let arguments: Vec<String> = words(&command);
        let input = input.replace('|', "\n");
        let output = etcdctl(&self.program, &self.store, &arguments, &input).await?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if command.starts_with("lease grant") {
            self.lease = text.split(' ').nth(1).context("the lease's number")?.to_owned();
        }
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let errors: Vec<&str> = errors.lines().map(last_field).collect();
        let status = output.status.code();
        let errors = self.comparable(&errors.join("\n"));
        Ok(format!("{status:?} {} {errors}", self.comparable(&text)))
    }

    fn comparable(&self, text: &str) -> String {
        if let Ok(mut value) = serde_json::from_str::<Value>(text) {
            strip(&mut value);
            return value.to_string();
        }
        let text = text.replace(&self.store.endpoint(), "ENDPOINT").replace(&self.lease, "LEASE");
        text.lines().map(comparable_line).collect::<Vec<_>>().join("\n")
    }
}

/// The arguments of a line; `""` is an empty one.
fn words(line: &str) -> Vec<String> {
    line.split(' ').map(|word| if word == "\"\"" { "" } else { word }.to_owned()).collect()
}

/// etcdctl logs errors as JSON with time and place; only what went wrong is compared.
fn last_field(line: &str) -> &str {
    let is_log = line.starts_with('{') && line.contains("\"level\"");
    match line.split_once("\"error\":") {
        Some((_, error)) if is_log => error,
        _ => line,
    }
}

/// Without times, numbers of members and sizes.
fn comparable_line(line: &str) -> String {
    let is_time = |word: &str| {
        let word = word.trim_end_matches(['.', ',', ')']);
        let digits = word.trim_end_matches(|c: char| c.is_alphabetic() || c == 'µ');
        digits.len() < word.len() && digits.parse::<f64>().is_ok()
    };
    let is_id = |word: &str| {
        let word = word.trim_matches(['"', ':', ',']);
        word.len() >= 12 && word.chars().all(|c| c.is_ascii_hexdigit())
    };
    let own = ["\"ClusterID\"", "\"MemberID\"", "\"RaftTerm\"", "\"Hash\""];
    if own.iter().any(|name| line.starts_with(name)) {
        return String::new();
    }
    let words = line.split(' ').map(|word| match word {
        word if is_time(word) => "TIME",
        word if is_id(word) => "ID",
        word => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !OWN_FIELDS.contains(&name.as_str()));
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}
