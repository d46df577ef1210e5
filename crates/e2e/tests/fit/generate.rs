//! Random worlds, from few words so that they meet. What is drawn is plain JSON, as a user would write
//! it.

mod pods;
mod rules;

use chance::Chance;
use serde_json::{Map, Value, json};

/// Where pods live; each namespace has a team of its own.
pub(crate) const NAMESPACES: [&str; 3] = ["north", "south", "beacons"];

const ZONES: [&str; 3] = ["z1", "z2", "z3"];

/// Kinds of volumes, with the zones or the disk of nodes that they can be reached from.
const VOLUMES: [(&str, &str); 3] = [("zoned", "z1"), ("two-zoned", "z1__z2"), ("fixed", "ssd")];

pub(crate) struct World {
    seed: u64,
    pub(crate) nodes: Vec<Value>,
    pub(crate) pods: Vec<BoundPod>,
}

/// A pod that has a node from the beginning.
pub(crate) struct BoundPod {
    pub(crate) object: Value,
    /// Whether it is on its way out.
    pub(crate) is_deleted: bool,
}

// === impl World ===

impl World {
    pub(crate) fn draw(seed: u64, chance: &mut Chance) -> Self {
        let count = 3 + chance.below(7);
        let mut nodes: Vec<_> = (0..count).map(|at| node(chance, &node_name(seed, at))).collect();
        nodes.push(last_node(seed));
        let mut pods = Vec::new();
        for at in 0..count {
            for number in 0..chance.below(4) {
                let name = format!("w{seed}-bound-{at}-{number}");
                let object = pods::bound(chance, &name, &node_name(seed, at));
                pods.push(BoundPod { object, is_deleted: chance.once_in(8) });
            }
        }
        Self { seed, nodes, pods }
    }

    /// A pod that looks for a place, the `number`th of this world.
    pub(crate) fn pending_pod(&self, chance: &mut Chance, number: usize) -> Value {
        pods::pending(chance, self.seed, number)
    }

    /// A pod for the last node alone.
    pub(crate) fn beacon(&self) -> Value {
        let name = format!("w{}-last", self.seed);
        json!({
            "metadata": {"name": name, "namespace": NAMESPACES[2]},
            "spec": {
                "containers": [{"name": "main", "image": "none"}],
                "nodeSelector": {"kubernetes.io/hostname": name},
                "tolerations": [{"operator": "Exists"}],
            },
        })
    }
}

fn node_name(seed: u64, at: usize) -> String {
    format!("w{seed}-n{at}")
}

fn node(chance: &mut Chance, name: &str) -> Value {
    let mut labels = Map::from_iter([("kubernetes.io/hostname".to_owned(), json!(name))]);
    if !chance.once_in(6) {
        labels.insert("topology.kubernetes.io/zone".to_owned(), json!(chance.pick(&ZONES)));
    }
    if !chance.once_in(3) {
        labels.insert("disk".to_owned(), json!(chance.pick(&["ssd", "hdd"])));
    }
    if !chance.once_in(3) {
        labels.insert("generation".to_owned(), json!(chance.pick(&["1", "2", "3", "new"])));
    }
    let mut allocatable = json!({
        "cpu": chance.pick(&["1", "2", "4"]),
        "memory": chance.pick(&["1Gi", "2Gi", "4Gi"]),
        "pods": chance.pick(&["3", "6", "10"]),
        "ephemeral-storage": "1Gi",
    });
    if chance.once_in(3) {
        allocatable["example.com/card"] = json!(chance.pick(&["1", "2"]));
    }
    json!({
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints(chance), "unschedulable": chance.once_in(10)},
        "status": {"allocatable": allocatable, "capacity": allocatable},
    })
}

fn taints(chance: &mut Chance) -> Vec<Value> {
    if !chance.once_in(3) {
        return Vec::new();
    }
    let mut all = vec![
        json!({"key": "dedicated", "value": "db", "effect": "NoSchedule"}),
        json!({"key": "dedicated", "value": "web", "effect": "NoExecute"}),
        json!({"key": "old", "effect": "PreferNoSchedule"}),
        json!({"key": "load", "value": "5", "effect": "NoSchedule"}),
    ];
    (0..=chance.below(2)).map(|_| all.swap_remove(chance.below(all.len()))).collect()
}

/// It takes one pod, and no other is for it.
fn last_node(seed: u64) -> Value {
    let name = format!("w{seed}-last");
    json!({
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {"taints": [{"key": "last", "effect": "NoSchedule"}]},
        "status": {"allocatable": {"pods": "1", "cpu": "1", "memory": "1Gi"}},
    })
}

pub(crate) fn namespaces() -> Vec<Value> {
    let namespace = |name: &&str| json!({"metadata": {"name": name, "labels": {"team": name}}});
    NAMESPACES.iter().map(namespace).collect()
}

/// Volumes, each bound to a claim; one of each kind for each namespace.
pub(crate) fn volumes() -> Vec<(Value, Vec<Value>)> {
    let kinds = VOLUMES.iter().flat_map(|kind| NAMESPACES[..2].iter().map(move |ns| (kind, ns)));
    let pair = |((kind, place), namespace): (&(&str, &str), &&str)| {
        let name = format!("{kind}-{namespace}");
        let claim_ref =
            json!({"namespace": namespace, "name": kind, "kind": "PersistentVolumeClaim"});
        let mut volume = json!({
            "metadata": {"name": name},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteMany"],
                "csi": {"driver": "disks.example.com", "volumeHandle": name},
                "claimRef": claim_ref,
                "storageClassName": "",
            },
        });
        if *kind == "fixed" {
            let term =
                json!({"matchExpressions": [{"key": "disk", "operator": "In", "values": [place]}]});
            volume["spec"]["nodeAffinity"] = json!({"required": {"nodeSelectorTerms": [term]}});
        } else {
            volume["metadata"]["labels"] = json!({"topology.kubernetes.io/zone": place});
        }
        let claim = json!({
            "metadata": {
                "name": kind, "namespace": namespace,
                "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
            },
            "spec": {
                "accessModes": ["ReadWriteMany"],
                "resources": {"requests": {"storage": "1Gi"}},
                "storageClassName": "",
                "volumeName": name,
            },
        });
        (volume, vec![claim])
    };
    kinds.map(pair).collect()
}
