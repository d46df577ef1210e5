//! A node as it tells the others of itself, and which tasks it could run at all. Says nothing about
//! what it has free now.

use std::collections::BTreeSet;

use bytes::Bytes;
use etcd_api::mvccpb::KeyValue;
use jiff::Timestamp;
use prost::Message;

use super::admission::Hindrance;
use super::amounts::{Amounts, Resource};
use super::id::{HostId, IdError, NodeId, Revision};
use super::keys::{Key, KeyError};
use super::spec::{Network, Spec};
use crate::wire;

/// The root that is used for tasks which name none, if a node has one of this name.
pub const DEFAULT_ROOTFS: &str = "default";

/// Reserved amounts are told at most this often.
pub const TELL_EVERY: std::time::Duration = std::time::Duration::from_secs(2);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub id: NodeId,
    pub host: HostId,
    pub name: String,
    pub address: String,
    pub version: String,
    pub schema: u32,
    pub runtime: String,
    pub enforces_limits: bool,
    pub capacity: Amounts,
    pub reserved: Amounts,
    pub reserved_at: Timestamp,
    pub rootfs: BTreeSet<String>,
    pub permissions: Permissions,
    pub is_draining: bool,
    /// Set while it takes nothing, or not everything, although it has room.
    pub hindrance: Option<Hindrance>,
}

/// What the node's owner lets tasks do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    pub net_host: bool,
    pub host_root: bool,
}

/// What a task demands of a node, whatever else runs there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirements {
    pub schema: u32,
    pub demand: Amounts,
    pub rootfs: String,
    pub needs_net_host: bool,
    pub is_root: bool,
}

/// Why a node cannot run a task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    #[error("the node is draining")]
    Draining,
    #[error("the node knows schema {knows}, the task has {has}")]
    Schema { knows: u32, has: u32 },
    #[error("the node has no rootfs {0:?}")]
    Rootfs(String),
    #[error("the node does not allow the network of the host")]
    NetHost,
    #[error("the node does not allow uid 0 on its own files")]
    HostRoot,
    #[error("the node has {}, the task needs {}", .resource.tell(*.has), .resource.tell(*.needs))]
    TooSmall { resource: Resource, has: u64, needs: u64 },
    #[error("the node has {} free, the task needs {}", .resource.tell(*.free), .resource.tell(*.needs))]
    Full { resource: Resource, free: u64, needs: u64 },
    #[error(transparent)]
    Machine(Hindrance),
}

/// Why a key-value is no node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodeError {
    #[error("the key is none of ours")]
    Key(#[source] KeyError),
    #[error("{0} is not the key of a node")]
    NotANode(Key),
    #[error("{id} cannot be read as a node")]
    Unparsable {
        id: NodeId,
        #[source]
        source: prost::DecodeError,
    },
    #[error("{id}: {field} is no id")]
    Id {
        id: NodeId,
        field: &'static str,
        #[source]
        source: IdError,
    },
    #[error("{key} holds the node {id}")]
    MismatchedId { key: NodeId, id: NodeId },
    #[error("{id}: reserved_at_ms is {millis}, which is no time")]
    Time { id: NodeId, millis: i64 },
}

// === impl Node ===

impl Node {
    /// The node and when its key was created: that revision is what claims are fenced by.
    pub fn decode(kv: &KeyValue) -> Result<(Self, Revision), NodeError> {
        let key = match Key::parse(kv.key()).map_err(NodeError::Key)? {
            Key::Node(id) => id,
            other => return Err(NodeError::NotANode(other)),
        };
        let message = wire::Node::decode(kv.value());
        let message = message.map_err(|source| NodeError::Unparsable { id: key, source })?;
        Ok((Self::read(key, message)?, Revision(kv.create_revision())))
    }

    fn read(key: NodeId, message: wire::Node) -> Result<Self, NodeError> {
        let id = message.node_id.parse();
        let id = id.map_err(|source| NodeError::Id { id: key, field: "node_id", source })?;
        if id != key {
            return Err(NodeError::MismatchedId { key, id });
        }
        let host = message.host_id.parse();
        let millis = message.reserved_at_ms;
        let permissions = message.permissions.unwrap_or_default();
        Ok(Self {
            hindrance: hindrance(&message),
            id,
            host: host.map_err(|source| NodeError::Id { id, field: "host_id", source })?,
            name: message.name,
            address: message.address,
            version: message.version,
            schema: message.schema,
            runtime: message.runtime,
            enforces_limits: message.limits_enforced,
            capacity: message.capacity.unwrap_or_default().into(),
            reserved: message.reserved.unwrap_or_default().into(),
            reserved_at: Timestamp::from_millisecond(millis)
                .ok()
                .ok_or(NodeError::Time { id, millis })?,
            rootfs: message.rootfs.into_iter().collect(),
            permissions: Permissions {
                net_host: permissions.net_host,
                host_root: permissions.host_root,
            },
            is_draining: message.draining,
        })
    }

    #[must_use]
    pub fn encode(&self) -> Bytes {
        self.to_message().encode_to_vec().into()
    }

    #[must_use]
    pub fn to_message(&self) -> wire::Node {
        wire::Node {
            node_id: self.id.to_string(),
            host_id: self.host.to_string(),
            name: self.name.clone(),
            address: self.address.clone(),
            version: self.version.clone(),
            schema: self.schema,
            runtime: self.runtime.clone(),
            limits_enforced: self.enforces_limits,
            capacity: Some(self.capacity.into()),
            reserved: Some(self.reserved.into()),
            reserved_at_ms: self.reserved_at.as_millisecond(),
            rootfs: self.rootfs.iter().cloned().collect(),
            permissions: Some(wire::Permissions {
                net_host: self.permissions.net_host,
                host_root: self.permissions.host_root,
            }),
            draining: self.is_draining,
            hindrance: match self.hindrance {
                None => wire::Hindrance::None,
                Some(Hindrance::Memory { .. }) => wire::Hindrance::Memory,
                Some(Hindrance::Pressure) => wire::Hindrance::Pressure,
                Some(Hindrance::Disk) => wire::Hindrance::Disk,
            }
            .into(),
            hindered_memory_bytes: match self.hindrance {
                Some(Hindrance::Memory { from_bytes }) => from_bytes,
                _ => 0,
            },
        }
    }

    /// Why this node never runs the task, however empty it is.
    #[must_use]
    pub fn obstacles(&self, needs: &Requirements) -> Vec<Obstacle> {
        let mut obstacles = Vec::new();
        let mut add =
            |applies: bool, obstacle: Obstacle| obstacles.extend(applies.then_some(obstacle));
        let (knows, has) = (self.schema, needs.schema);
        add(self.is_draining, Obstacle::Draining);
        add(has > knows, Obstacle::Schema { knows, has });
        add(!self.has_rootfs(needs), Obstacle::Rootfs(needs.rootfs.clone()));
        add(needs.needs_net_host && !self.permissions.net_host, Obstacle::NetHost);
        add(self.is_root_on_host(needs) && !self.permissions.host_root, Obstacle::HostRoot);
        if let Some(resource) = needs.demand.exceeds(&self.capacity) {
            let (has, needs) = (self.capacity.of(resource), needs.demand.of(resource));
            obstacles.push(Obstacle::TooSmall { resource, has, needs });
        }
        obstacles
    }

    /// How many such tasks the empty node could run at once: its weight among the nodes. 0 is never.
    #[must_use]
    pub fn weight(&self, needs: &Requirements) -> u64 {
        if self.obstacles(needs).is_empty() { needs.demand.times_in(&self.capacity) } else { 0 }
    }

    fn has_rootfs(&self, needs: &Requirements) -> bool {
        needs.rootfs.is_empty() || self.rootfs.contains(&needs.rootfs)
    }

    /// A task without a rootfs sees files of the host where the node has no default.
    fn is_root_on_host(&self, needs: &Requirements) -> bool {
        needs.is_root && needs.rootfs.is_empty() && !self.rootfs.contains(DEFAULT_ROOTFS)
    }
}

/// One that only a newer version knows is none: nothing is decided by it.
fn hindrance(message: &wire::Node) -> Option<Hindrance> {
    match message.hindrance() {
        wire::Hindrance::None => None,
        wire::Hindrance::Memory => {
            Some(Hindrance::Memory { from_bytes: message.hindered_memory_bytes })
        }
        wire::Hindrance::Pressure => Some(Hindrance::Pressure),
        wire::Hindrance::Disk => Some(Hindrance::Disk),
    }
}

// === impl Requirements ===

impl Requirements {
    #[must_use]
    pub fn new(schema: u32, spec: &Spec) -> Self {
        Self {
            schema,
            demand: spec.demand(),
            rootfs: spec.rootfs.clone(),
            needs_net_host: spec.network == Network::Host,
            is_root: spec.user.uid == 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use etcd_api::mvccpb::KeyValueParts;

    fn node() -> Node {
        Node {
            id: "6f1c83a2-52d7-4e0e-9b5d-0c2f7a4190e6".parse().unwrap(),
            host: "6f1c83a2-52d7-4e0e-9b5d-0c2f7a4190e7".parse().unwrap(),
            name: "node1".to_owned(),
            address: "127.0.0.1:8080".to_owned(),
            version: "0.1.0".to_owned(),
            schema: 1,
            runtime: "native".to_owned(),
            enforces_limits: true,
            capacity: Amounts { cpu_millis: 1000, memory_bytes: 100, pids: 10, disk_bytes: 10 },
            reserved: Amounts::default(),
            reserved_at: Timestamp::UNIX_EPOCH,
            rootfs: ["busybox".to_owned()].into(),
            permissions: Permissions::default(),
            is_draining: false,
            hindrance: None,
        }
    }

    fn needs() -> Requirements {
        let demand = Amounts { cpu_millis: 300, memory_bytes: 10, pids: 1, disk_bytes: 0 };
        let rootfs = String::new();
        Requirements { schema: 1, demand, rootfs, needs_net_host: false, is_root: false }
    }

    fn kept(node: &Node, key: &str) -> Result<(Node, Revision), NodeError> {
        let (key, value) = (key.as_bytes(), &node.encode()[..]);
        let parts = KeyValueParts { key, value, create_revision: 4, ..Default::default() };
        Node::decode(&KeyValue::new(&parts))
    }

    #[test]
    fn what_was_written_is_read_under_its_own_key() {
        let memory = Hindrance::Memory { from_bytes: 7 };
        for hindrance in [None, Some(memory), Some(Hindrance::Pressure), Some(Hindrance::Disk)] {
            let node = Node { hindrance, ..node() };
            let read = kept(&node, &format!("/node/{}", node.id));
            assert_eq!(read, Ok((node, Revision(4))));
        }
        let (node, kept) = (node(), |key: &str| kept(&node(), key));
        let other = kept(&format!("/node/{}", node.host));
        assert!(matches!(other, Err(NodeError::MismatchedId { .. })), "{other:?}");
        let task = kept(&format!("/task/{}", node.id));
        assert!(matches!(task, Err(NodeError::NotANode(_))), "{task:?}");
    }

    #[test]
    fn every_obstacle_is_named_and_makes_the_weight_nothing() {
        assert_eq!(node().weight(&needs()), 3);
        let demand = Amounts { disk_bytes: 11, ..needs().demand };
        let worst = Requirements {
            schema: 2,
            demand,
            rootfs: "debian".to_owned(),
            needs_net_host: true,
            is_root: true,
        };
        let node = Node { is_draining: true, ..node() };
        let told: String =
            node.obstacles(&worst).iter().map(|obstacle| format!("{obstacle}\n")).collect();
        expect![[r#"
            the node is draining
            the node knows schema 1, the task has 2
            the node has no rootfs "debian"
            the node does not allow the network of the host
            the node has 10B of disk, the task needs 11B of disk
        "#]]
        .assert_eq(&told);
        assert_eq!(node.weight(&worst), 0);
    }

    #[test]
    fn root_needs_leave_only_where_it_would_see_files_of_the_host() {
        let root = Requirements { is_root: true, ..needs() };
        assert_eq!(node().obstacles(&root), [Obstacle::HostRoot]);
        let named = Requirements { rootfs: "busybox".to_owned(), ..root.clone() };
        assert_eq!(node().obstacles(&named), []);
        let with_default = Node { rootfs: [DEFAULT_ROOTFS.to_owned()].into(), ..node() };
        assert_eq!(with_default.obstacles(&root), []);
    }
}
