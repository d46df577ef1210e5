//! How long the autoscaler's core takes to place pods: many of few kinds, many of many, pods that fit
//! nowhere, and pods that keep each other away.

pub(crate) mod objects;

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use fit::{ClassId, Cluster, NodeId, Packed, Packing, Plan, Volumes};
use k8s_openapi::api::core::v1::Pod;
use serde::Serialize;
use tokio::time::Instant;

use objects::{keeping_away, node, pod};

/// What is done between two looks at the clock, as the autoscaler would.
const STEPS: usize = 10_000;

/// How much smaller than life everything is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    pub divisor: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    pub work: &'static str,
    pub pods: usize,
    /// Those that were made for the pods.
    pub new_nodes: usize,
    pub left: usize,
    /// Reading the objects.
    pub compile_millis: f64,
    /// Placing the pods.
    pub pack_millis: f64,
}

/// What one row packs.
struct Work {
    name: &'static str,
    cluster: Cluster,
    nodes: Vec<NodeId>,
    pods: Vec<Pod>,
    /// Cores and bytes of a new node; without, there is none.
    new_node: Option<(u64, u64)>,
}

const GIB: u64 = 1 << 30;

/// How many rows there are.
pub(crate) const WORKS: usize = 5;

/// Every row, once.
pub fn run(scale: Scale) -> Result<Vec<Figure>> {
    let rows: [fn(Scale) -> Result<Work>; WORKS] =
        [two_kinds, all_distinct, none_fits, surge, many_deployments_surge];
    rows.into_iter().map(|row| measure(row(scale)?)).collect()
}

fn measure(mut work: Work) -> Result<Figure> {
    let template = match work.new_node {
        Some((cores, bytes)) => {
            Some(work.cluster.template(&node("new", cores, bytes), Vec::new())?)
        }
        None => None,
    };
    let began = Instant::now();
    let volumes = Volumes::default();
    let classes: Result<Vec<ClassId>, _> =
        work.pods.iter().map(|pod| work.cluster.compile(pod, &volumes)).collect();
    let classes = classes?;
    let compiled = Instant::now();
    let plan = Plan {
        pods: &classes,
        nodes: work.nodes,
        template: template.as_ref(),
        new_nodes_max: classes.len(),
    };
    let mut packing = Packing::new(work.cluster.fork(), &plan);
    while !packing.advance(STEPS) {}
    let ended = Instant::now();
    let Packed { placed, left, new_nodes, .. } = packing.finish();
    let left: usize = left.iter().map(|left| left.pods.len()).sum();
    ensure!(placed.len() + left == classes.len(), "{}: pods were lost", work.name);
    Ok(Figure {
        work: work.name,
        pods: classes.len(),
        new_nodes: new_nodes.len(),
        left,
        compile_millis: (compiled - began).as_secs_f64() * 1e3,
        pack_millis: (ended - compiled).as_secs_f64() * 1e3,
    })
}

fn empty() -> Cluster {
    Cluster::new(&[("default".to_owned(), BTreeMap::new())].into())
}

/// The estimate that upstream measures: 2,595 nodes at full scale.
fn two_kinds(scale: Scale) -> Result<Work> {
    let small = (0..50_000 / scale.divisor).map(|_| pod("small", 50, 100));
    let large = (0..1_000 / scale.divisor).map(|_| pod("large", 95, 190));
    let pods = small.chain(large).collect();
    Ok(Work {
        name: "two kinds of pods",
        cluster: empty(),
        nodes: Vec::new(),
        pods,
        new_node: Some((1, GIB)),
    })
}

fn all_distinct(scale: Scale) -> Result<Work> {
    let pods = 0..50_000 / scale.divisor as u64;
    let pods = pods.map(|at| pod("any", 20 + at % 400, (1 + at % 97) * (GIB >> 8) + at)).collect();
    Ok(Work {
        name: "every pod another kind",
        cluster: empty(),
        nodes: Vec::new(),
        pods,
        new_node: Some((16, 64 * GIB)),
    })
}

/// Nodes have room for most of what is asked, never for all of it.
fn none_fits(scale: Scale) -> Result<Work> {
    let mut cluster = empty();
    let nodes = (0..1_000 / scale.divisor).map(|at| {
        let id = cluster.add_node(&node(&format!("n{at}"), 4, 8 * GIB))?;
        let class = cluster.compile_bound(&pod("resident", 3_500, 2 * GIB))?;
        cluster.place(class, id);
        Ok(id)
    });
    let nodes: Result<_> = nodes.collect();
    let pods = 0..12_000 / scale.divisor as u64;
    let pods = pods.map(|at| pod("any", 501 + at % 3_000, GIB + at)).collect();
    Ok(Work { name: "no pod fits on 1,000 nodes", nodes: nodes?, cluster, pods, new_node: None })
}

/// One deployment whose pods want a node each.
fn surge(scale: Scale) -> Result<Work> {
    let pods = (0..5_000 / scale.divisor).map(|_| keeping_away("web")).collect();
    Ok(Work {
        name: "one deployment, a node for each pod",
        cluster: empty(),
        nodes: Vec::new(),
        pods,
        new_node: Some((16, 64 * GIB)),
    })
}

fn many_deployments_surge(scale: Scale) -> Result<Work> {
    let deployments = 0..200 / scale.divisor.min(20);
    let pods = deployments.flat_map(|at| (0..100).map(move |_| keeping_away(&format!("web-{at}"))));
    Ok(Work {
        name: "200 deployments, each with a node for each pod",
        cluster: empty(),
        nodes: Vec::new(),
        pods: pods.collect(),
        new_node: Some((16, 64 * GIB)),
    })
}
