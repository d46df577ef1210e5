//! Our side: the same objects, as the API server gave them back, in a [`Cluster`].

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::{Context, Result};
use fit::{ClassId, Cluster, NodeId, Volumes};
use k8s_openapi::api::core::v1::{Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod};
use kube::ResourceExt;

/// What all worlds share.
#[derive(Default)]
pub(crate) struct Fixtures {
    pub(crate) namespaces: Vec<Namespace>,
    pub(crate) volumes: Vec<PersistentVolume>,
    pub(crate) claims: Vec<PersistentVolumeClaim>,
}

pub(crate) struct Model {
    cluster: Cluster,
    volumes: Volumes,
    nodes: BTreeMap<String, NodeId>,
}

// === impl Model ===

impl Model {
    pub(crate) fn new(fixtures: &Fixtures) -> Self {
        let namespaces = fixtures.namespaces.iter();
        let namespaces = namespaces.map(|each| (each.name_any(), each.labels().clone())).collect();
        let mut volumes = Volumes::default();
        fixtures.volumes.iter().for_each(|volume| volumes.add_volume(volume));
        fixtures.claims.iter().for_each(|claim| volumes.add_claim(claim));
        Self { cluster: Cluster::new(&namespaces), volumes, nodes: BTreeMap::new() }
    }

    pub(crate) fn add_node(&mut self, node: &Node) -> Result<()> {
        self.nodes.insert(node.name_any(), self.cluster.add_node(node)?);
        Ok(())
    }

    pub(crate) fn place(&mut self, pod: &Pod, node: &str) -> Result<()> {
        let node = self.nodes.get(node).with_context(|| format!("no node {node}"))?;
        let class = self.cluster.compile_bound(pod)?;
        self.cluster.place(class, *node);
        Ok(())
    }

    /// The nodes on which the pod fits.
    pub(crate) fn fitting(&mut self, pod: &Pod) -> Result<Vec<String>> {
        let class = self.compile(pod)?;
        let fits = |(name, node): (&String, &NodeId)| {
            self.cluster.fits(class, *node).then(|| name.clone())
        };
        Ok(self.nodes.iter().filter_map(fits).collect())
    }

    /// What each node says of the pod.
    pub(crate) fn explain(&mut self, pod: &Pod) -> Result<String> {
        let class = self.compile(pod)?;
        let mut lines = String::new();
        for (name, node) in &self.nodes {
            let refusal = self.cluster.explain(class, *node);
            let words = refusal.map_or_else(|| "fits".to_owned(), |refusal| refusal.to_string());
            writeln!(lines, "{name}: {words}")?;
        }
        Ok(lines)
    }

    fn compile(&mut self, pod: &Pod) -> Result<ClassId> {
        self.cluster.compile(pod, &self.volumes).context("worlds have nothing unsupported")
    }
}
