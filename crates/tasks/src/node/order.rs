//! From what the agent wants started to what the sandbox runs. Everything was checked when it was
//! submitted.

use std::collections::BTreeSet;
use std::path::PathBuf;

use sandbox::{AttemptId, Limits, Medium, Network, Order, Root, Spec, User};

use super::leftovers;
use crate::core::agent::Start;
use crate::core::node::DEFAULT_ROOTFS;
use crate::core::spec::{self, SpecError};

/// What of the node a command depends on.
#[derive(Clone, Debug)]
pub(super) struct Surroundings {
    pub(super) node_name: String,
    pub(super) rootfs: BTreeSet<String>,
}

// === impl Surroundings ===

impl Surroundings {
    pub(super) fn order(&self, start: &Start) -> Result<Order, SpecError> {
        let asked = spec::Spec::decode(&start.spec)?;
        let id = AttemptId { task: start.task.0, number: start.attempt.0 };
        Ok(Order { id, spec: self.spec(asked, start), note: leftovers::note(start.node) })
    }

    fn spec(&self, asked: spec::Spec, start: &Start) -> Spec {
        let limits = limits(&asked);
        let mut env = asked.env;
        env.extend([
            ("WINDLASS_TASK_ID".to_owned(), start.task.to_string()),
            ("WINDLASS_ATTEMPT".to_owned(), start.attempt.to_string()),
            ("WINDLASS_NODE".to_owned(), self.node_name.clone()),
            ("WINDLASS_FENCE".to_owned(), start.fence.0.to_string()),
        ]);
        Spec {
            argv: std::iter::once(asked.command).chain(asked.args).collect(),
            env,
            workdir: PathBuf::from(asked.workdir),
            user: User { uid: asked.user.uid, gid: asked.user.gid },
            stdin: asked.stdin.to_vec(),
            root: self.root(asked.rootfs),
            network: match asked.network {
                spec::Network::None => Network::None,
                spec::Network::Host => Network::Host,
            },
            limits,
            timeout: asked.timeout,
            grace: asked.grace,
        }
    }

    /// The host's own files only where the node has no default.
    fn root(&self, asked: String) -> Root {
        let name = if asked.is_empty() { DEFAULT_ROOTFS.to_owned() } else { asked };
        if name == DEFAULT_ROOTFS && !self.rootfs.contains(DEFAULT_ROOTFS) {
            return Root::HostView;
        }
        Root::Named { name }
    }
}

fn limits(asked: &spec::Spec) -> Limits {
    Limits {
        cpu_weight_millis: asked.resources.cpu_millis,
        cpu_quota_millis: asked.limits.cpu_millis,
        memory_bytes: asked.limits.memory_bytes,
        pids: asked.limits.pids,
        scratch_bytes: asked.limits.scratch_bytes,
        scratch_medium: match asked.resources.scratch {
            spec::Scratch::Memory => Medium::Memory,
            spec::Scratch::Disk => Medium::Disk,
        },
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;
    use uuid::Uuid;

    use super::*;
    use crate::core::id::{AttemptNumber, Fence, NodeId, TaskId};
    use crate::wire;

    fn order(spec: &wire::TaskSpec, rootfs: &[&str]) -> Order {
        let start = Start {
            task: TaskId(Uuid::from_u128(1)),
            attempt: AttemptNumber(2),
            node: NodeId(Uuid::from_u128(3)),
            fence: Fence(40),
            spec: spec.encode_to_vec().into(),
        };
        let rootfs = rootfs.iter().map(|name| (*name).to_owned()).collect();
        Surroundings { node_name: "node1".to_owned(), rootfs }.order(&start).unwrap()
    }

    #[test]
    fn a_command_is_told_who_it_is() {
        let spec = wire::TaskSpec {
            command: "ls".to_owned(),
            args: vec!["-l".to_owned()],
            env: [("A".to_owned(), "b".to_owned())].into(),
            ..Default::default()
        };
        let order = order(&spec, &[]);
        assert_eq!(order.spec.argv, ["ls", "-l"]);
        let env: Vec<String> =
            order.spec.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
        expect_test::expect![[r#"
            A=b
            WINDLASS_ATTEMPT=2
            WINDLASS_FENCE=40
            WINDLASS_NODE=node1
            WINDLASS_TASK_ID=00000000-0000-0000-0000-000000000001"#]]
        .assert_eq(&env.join("\n"));
        assert_eq!(order.note, NodeId(Uuid::from_u128(3)).0.as_bytes());
    }

    #[test]
    fn the_root_is_the_named_one_or_the_default_or_the_hosts() {
        let spec = |rootfs: &str| wire::TaskSpec {
            command: "true".to_owned(),
            rootfs: rootfs.to_owned(),
            ..Default::default()
        };
        let named = |name: &str| Root::Named { name: name.to_owned() };
        assert_eq!(order(&spec(""), &["busybox"]).spec.root, Root::HostView);
        assert_eq!(order(&spec(""), &["default"]).spec.root, named("default"));
        assert_eq!(order(&spec("busybox"), &["busybox"]).spec.root, named("busybox"));
    }
}
