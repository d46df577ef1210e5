//! `windlass nodes`: who runs tasks, and letting one of them leave.

use serde::Serialize;
use tasks::wire;

use super::task::{connect, print};
use crate::{
    cli::tasks::{DrainArgs, NodesArgs, NodesCommand, NodesListArgs},
    config::size,
    report::{self, Outcome},
};

/// A node that was told to leave, by the name it was called.
#[derive(Clone, Debug, Serialize)]
struct Drained {
    node: String,
    draining: bool,
}

/// A node as it is printed.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Described {
    pub(crate) name: String,
    node_id: String,
    host_id: String,
    address: String,
    version: String,
    pub(crate) runtime: String,
    pub(crate) limits_enforced: bool,
    pub(crate) capacity: Amounts,
    pub(crate) reserved: Amounts,
    rootfs: Vec<String>,
    allows_net_host: bool,
    allows_host_root: bool,
    pub(crate) draining: bool,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Amounts {
    pub(crate) cpu_millis: u64,
    pub(crate) memory_bytes: u64,
    pids: u64,
    disk_bytes: u64,
}

pub(crate) async fn run(arguments: NodesArgs) -> Outcome {
    match arguments.command {
        Some(NodesCommand::Drain(arguments)) => drain(arguments).await,
        None => list(arguments.list).await,
    }
}

async fn list(arguments: NodesListArgs) -> Outcome {
    let client = connect::open(&arguments.connect).await?;
    let nodes = client.nodes().await.map_err(connect::failure)?;
    let mut nodes: Vec<Described> = nodes.into_iter().map(Described::of).collect();
    nodes.sort_by(|a, b| (&a.name, &a.node_id).cmp(&(&b.name, &b.node_id)));
    print(arguments.output, &nodes, |nodes| table(nodes))
}

async fn drain(arguments: DrainArgs) -> Outcome {
    let client = connect::open(&arguments.connect).await?;
    client.drain(&arguments.name).await.map_err(connect::failure)?;
    let drained = Drained { node: arguments.name, draining: true };
    print(arguments.output, &drained, |Drained { node, .. }| {
        format!("{node} takes no more tasks, and leaves when those it runs have ended")
    })
}

fn table(nodes: &[Described]) -> String {
    let of = |reserved: String, capacity: String| format!("{reserved}/{capacity}");
    let row = |node: &Described| {
        let (has, taken) = (node.capacity, node.reserved);
        [
            node.name.clone(),
            if node.draining { "draining" } else { "ready" }.to_owned(),
            of(size::show_cpus(taken.cpu_millis), size::show_cpus(has.cpu_millis)),
            of(size::show(taken.memory_bytes), size::show(has.memory_bytes)),
            node.runtime.clone(),
            if node.limits_enforced { "enforced" } else { "not enforced" }.to_owned(),
            node.address.clone(),
            node.node_id.clone(),
        ]
    };
    let header = ["NAME", "STATE", "CPUS", "MEMORY", "RUNTIME", "LIMITS", "ADDRESS", "ID"];
    report::table(header, nodes.iter().map(row))
}

// === impl Described ===

impl Described {
    pub(crate) fn of(node: wire::Node) -> Self {
        let permissions = node.permissions.unwrap_or_default();
        Self {
            name: node.name,
            node_id: node.node_id,
            host_id: node.host_id,
            address: node.address,
            version: node.version,
            runtime: node.runtime,
            limits_enforced: node.limits_enforced,
            capacity: Amounts::of(node.capacity.unwrap_or_default()),
            reserved: Amounts::of(node.reserved.unwrap_or_default()),
            rootfs: node.rootfs,
            allows_net_host: permissions.net_host,
            allows_host_root: permissions.host_root,
            draining: node.draining,
        }
    }
}

// === impl Amounts ===

impl Amounts {
    fn of(amounts: wire::Amounts) -> Self {
        let wire::Amounts { cpu_millis, memory_bytes, pids, disk_bytes } = amounts;
        Self { cpu_millis, memory_bytes, pids, disk_bytes }
    }
}
