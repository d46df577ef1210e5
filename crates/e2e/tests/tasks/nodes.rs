//! Several nodes: the example of the design, one shared store of either kind, draining, and a machine
//! without root.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use anyhow::{Context, Result, ensure};
use e2e::assets::Asset;
use e2e::ports;
use e2e::process::{Process, Program};
use e2e::scene::Scene;
use e2e::store::Lane;
use e2e::tasks::cluster::{Cluster, ClusterOptions};
use e2e::tasks::command::Windlass;
use e2e::tasks::ledger::Work;
use e2e::tasks::net::Network;
use e2e::tasks::node::{Node, NodeOptions};
use e2e::wait::{Level, wait_for};
use tokio::process::Command;

use crate::stage::{PATIENCE, Up, cases, wait_state};

cases! {
    needs [Asset::Windlass, Asset::Etcd, Asset::Etcdctl];
    two_node_example,
    store_client_can_connect,
    three_nodes_share_windlass,
    three_nodes_share_etcd,
    a_drained_node_finishes_and_leaves,
    an_ordinary_user_is_told_what_is_not_enforced,
    reg05_own_cgroup_root_and_capacity_check,
}

/// The commands as the documentation has them, in a network where those ports are free.
async fn two_node_example(scene: &Scene) -> Result<()> {
    let network = Network::new()?;
    let start = |name: &str, line: &str| {
        let folder = scene.folder(name)?;
        let words =
            format!("--net={} {}", network.path(), scene.program(Asset::Windlass)?.display());
        let words = [&words, line, "--data-dir", &folder.display().to_string(), "--insecure"];
        Process::start(&Program {
            name: name.to_owned(),
            path: "nsenter".into(),
            arguments: words.join(" ").split_whitespace().map(ToOwned::to_owned).collect(),
            environment: Vec::new(),
            log_folder: scene.folder("logs")?,
        })
    };
    let first = "node --name node1 --listen 127.0.0.1:8080 --store-listen 127.0.0.1:2379";
    let second = "node --name node2 --listen 127.0.0.2:8080 --store http://127.0.0.1:2379";
    let mut nodes = [start("n1", first)?, start("n2", second)?];
    let windlass = Windlass::asking(scene, "127.0.0.2:8080")?.within(&network);
    wait_for("both nodes to be there", PATIENCE, async || {
        nodes.iter_mut().try_for_each(Process::ensure_alive)?;
        let said = windlass.call(&["nodes"], &[]).await?;
        let are_there = said.stdout.contains("node1") && said.stdout.contains("node2");
        Ok(if are_there { Level::Reached(()) } else { Level::Below(format!("{said:?}")) })
    })
    .await?;
    let said = windlass.run(&["ls", "--", "-l"]).await?;
    ensure!(said.code == Some(0) && said.stdout.starts_with("total "), "{said:?}");
    for node in nodes.into_iter().rev() {
        node.stop().await?;
    }
    Ok(())
}

/// The store of a node is one like any other: etcdctl writes and reads there, and sees its tasks.
async fn store_client_can_connect(scene: &Scene) -> Result<()> {
    let [port] = ports::free()?;
    let endpoint = format!("127.0.0.1:{port}");
    let flags = ["--store-listen", &endpoint, "--insecure"].map(ToOwned::to_owned).to_vec();
    let options = NodeOptions { name: "node1".to_owned(), flags, ..NodeOptions::default() };
    let mut node = Node::prepare(scene, &options)?;
    node.start().await?;
    let etcdctl = async |words: &[&str]| {
        let mut command = Command::new(scene.program(Asset::Etcdctl)?);
        let output = command.args(["--endpoints", &endpoint]).args(words).output().await;
        let output = output.context("run etcdctl")?;
        let said = String::from_utf8(output.stdout).context("etcdctl prints text")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "etcdctl {words:?}: {}: {errors}", output.status);
        anyhow::Ok(said)
    };
    ensure!(etcdctl(&["put", "/mine", "kept"]).await? == "OK\n");
    ensure!(etcdctl(&["get", "/mine"]).await? == "/mine\nkept\n");
    let said = Windlass::asking(scene, &node.address())?.run(&["--", "true"]).await?;
    ensure!(said.code == Some(0), "{said:?}");
    let keys = etcdctl(&["get", "--prefix", "--keys-only", "/task/status/complete/"]).await?;
    ensure!(keys.split_whitespace().count() == 1, "{keys}");
    node.stop().await
}

async fn three_nodes_share_windlass(scene: &Scene) -> Result<()> {
    three_nodes(scene, Lane::Windlass).await
}

async fn three_nodes_share_etcd(scene: &Scene) -> Result<()> {
    three_nodes(scene, Lane::Etcd).await
}

/// Every node runs some of the tasks, and answers for all of them.
async fn three_nodes(scene: &Scene, lane: Lane) -> Result<()> {
    let mut cluster = Cluster::start(scene, &ClusterOptions { lane, ..Default::default() }).await?;
    let half = half_of_a_node(&cluster).await?;
    let ids = cluster.submit(6, Work::of(8).with_cpu(half)).await?;
    cluster.wait_began(&ids).await?;
    for number in 0..cluster.nodes.len() {
        let there = cluster.on_node(number, &ids).await?;
        ensure!(there.len() == 2, "node {number} runs {} of 6", there.len());
    }
    let windlass = Windlass::asking(scene, &cluster.nodes[0].address())?;
    let id = windlass.detach(&["--cpus", "0.01", "--", "echo", "from elsewhere"]).await?;
    wait_state(&windlass, &id, "complete").await?;
    for node in &cluster.nodes {
        let windlass = Windlass::asking(scene, &node.address())?;
        let said = windlass.call(&["task", "logs"], &[&id]).await?;
        ensure!(said.stdout == "from elsewhere\n", "through {}: {said:?}", node.name());
        let list = windlass.json(&["task", "list"], &[]).await?;
        ensure!(list.as_array().is_some_and(|all| all.len() == 7), "through {}", node.name());
    }
    let tally = cluster.judge(scene).await?;
    ensure!(tally.complete == 6 && tally.attempts == 6, "{tally:?}");
    Ok(())
}

/// As much of the processors as lets two tasks fit on a node, and not three.
async fn half_of_a_node(cluster: &Cluster) -> Result<u64> {
    let nodes = cluster.client().await?.nodes().await.context("list nodes")?;
    let capacity = nodes.first().and_then(|node| node.capacity).context("it has a capacity")?;
    Ok(capacity.cpu_millis / 2 - 10)
}

async fn a_drained_node_finishes_and_leaves(scene: &Scene) -> Result<()> {
    let mut cluster = Cluster::start(scene, &ClusterOptions::default()).await?;
    let before = cluster.submit(12, Work::of(6)).await?;
    cluster.wait_began(&before).await?;
    let windlass = Windlass::asking(scene, &cluster.nodes[1].address())?;
    let said = windlass.call(&["nodes", "drain"], &["node1"]).await?;
    ensure!(said.code == Some(0), "{said:?}");
    let after = cluster.submit(12, Work::of(1)).await?;
    wait_for("node1 to leave", PATIENCE, async || {
        let nodes = windlass.json(&["nodes"], &[]).await?;
        let nodes = nodes.as_array().context("a list")?;
        let left = nodes.iter().all(|node| node["name"] != "node1");
        Ok(if left { Level::Reached(()) } else { Level::Below(format!("{nodes:?}")) })
    })
    .await?;
    cluster.wait_finished().await?;
    let mine = cluster.on_node(0, &after).await?;
    ensure!(mine.is_empty(), "it took tasks while it was drained: {mine:?}");
    let tally = cluster.judge(scene).await?;
    ensure!(tally.complete == 24 && tally.attempts == 24, "nothing was cut short: {tally:?}");
    Ok(())
}

async fn an_ordinary_user_is_told_what_is_not_enforced(scene: &Scene) -> Result<()> {
    fs::set_permissions(scene.path(), Permissions::from_mode(0o755)).context("let others in")?;
    let folder = scene.folder("up")?;
    std::os::unix::fs::chown(&folder, Some(65534), Some(65534)).context("give the folder away")?;
    // The binary may lie where only root can look.
    let binary = scene.path().join("windlass");
    fs::copy(scene.program(Asset::Windlass)?, &binary).context("copy the binary")?;
    let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let up = Up::start_of(scene, &nobody, &binary).await?;
    let log = up.process.log()?;
    ensure!(log.contains("no limits are enforced"), "{log}");
    let nodes = up.windlass.json(&["nodes"], &[]).await?;
    ensure!(nodes[0]["runtime"] == "process" && nodes[0]["limits_enforced"] == false, "{nodes}");
    let table = up.windlass.call(&["nodes"], &[]).await?;
    ensure!(table.stdout.contains("not enforced"), "{table:?}");
    let said = up.windlass.run(&["--", "sh", "-c", "id -u; echo aside >&2; exit 7"]).await?;
    ensure!(
        said.code == Some(7) && said.stdout == "65534\n" && said.stderr == "aside\n",
        "{said:?}"
    );
    let id = up.windlass.detach(&["--", "sleep", "600"]).await?;
    up.wait_state(&id, "running").await?;
    ensure!(up.windlass.call(&["task", "cancel"], &[&id]).await?.code == Some(0));
    up.interrupt().await
}

/// Containers lay in the cgroup of whoever had started the node, and a node took tasks larger than
/// itself.
async fn reg05_own_cgroup_root_and_capacity_check(scene: &Scene) -> Result<()> {
    let up = Up::start(scene).await?;
    let nodes = up.windlass.json(&["nodes"], &[]).await?;
    let host_id = nodes[0]["host_id"].as_str().context("a node has a host")?;
    let id = up.windlass.detach(&["--", "sleep", "600"]).await?;
    wait_for("its process to be in a cgroup below that of the host", PATIENCE, async || {
        let group = format!("/windlass/{host_id}/{id}-1");
        let found = groups_of(&["sleep", "600"])?;
        let is_there = found.iter().any(|groups| groups.contains(&group));
        Ok(if is_there { Level::Reached(()) } else { Level::Below(format!("{found:?}")) })
    })
    .await?;
    ensure!(up.windlass.call(&["task", "cancel"], &[&id]).await?.code == Some(0));

    let capacity = nodes[0]["capacity"]["memory_bytes"].as_u64().context("a number of bytes")?;
    let (fits, exceeds) = (format!("{}", capacity / 4), format!("{}", capacity + 1));
    let huge = up.windlass.detach(&["--memory", &exceeds, "--", "true"]).await?;
    let said = up.windlass.run(&["--memory", &fits, "--", "true"]).await?;
    ensure!(said.code == Some(0), "what comes behind it runs: {said:?}");
    let task = up.windlass.json(&["task", "status"], &[&huge]).await?;
    ensure!(task["state"] == "queued", "it takes what does not fit: {task}");
    ensure!(up.windlass.call(&["task", "cancel"], &[&huge]).await?.code == Some(0));
    up.interrupt().await
}

/// The cgroups of every process with this command line.
fn groups_of(words: &[&str]) -> Result<Vec<String>> {
    let command_line: String = words.iter().flat_map(|word| [word, "\0"]).collect();
    let processes = fs::read_dir("/proc").context("list processes")?.flatten();
    let processes = processes.map(|entry| entry.path()).filter(|process| {
        fs::read(process.join("cmdline")).is_ok_and(|found| found == command_line.as_bytes())
    });
    Ok(processes.filter_map(|process| fs::read_to_string(process.join("cgroup")).ok()).collect())
}
