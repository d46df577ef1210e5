//! What the cases share: one cluster per ground, and the replicas that run on it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use e2e::kube::Ground;
use e2e::labels::{Cluster, Replica, Role, World, identity, labels};
use e2e::scene::Scene;
use etcd_api::etcdserverpb::RangeRequest;
use futures::future::LocalBoxFuture;
use tokio::runtime::Runtime;

/// Replicas of one kind, where one shall not be enough.
pub(crate) const CROWD: usize = 4;

/// Where the API server keeps Nodes, from the first key to the end.
const NODE_KEYS: (&str, &str) = ("/registry/minions/", "/registry/minions0");

/// The version in the store of a Node that was created and then written once.
const RESTORED_ONCE: i64 = 2;

/// One named test.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) play: for<'s> fn(&'s mut Stage) -> LocalBoxFuture<'s, Result<()>>,
}

/// Lists functions as cases under their own names.
macro_rules! cases {
    ($($case:ident),+ $(,)?) => {
        pub(crate) fn cases() -> Vec<$crate::stage::Case> {
            vec![$($crate::stage::Case {
                name: stringify!($case),
                play: |stage| Box::pin($case(stage)),
            }),+]
        }
    };
}
pub(crate) use cases;

/// The stage on the ground that is being played, if any.
pub(crate) struct Theatre {
    stage: Option<(Ground, Stage)>,
    runtime: Runtime,
}

/// A cluster, and the replicas of the current case.
pub(crate) struct Stage {
    pub(crate) world: World,
    pub(crate) watchers: Vec<Replica>,
    pub(crate) processors: Vec<Replica>,
    /// As whom those held Leases that were killed.
    pub(crate) killed: Vec<String>,
}

/// What a node of most cases carries.
pub(crate) fn gold() -> BTreeMap<String, String> {
    labels(&[("team/tier", "gold"), ("rack", "r7")])
}

/// Labels that no other node has.
pub(crate) fn labels_of(node: &str) -> BTreeMap<String, String> {
    labels(&[("team/tier", "gold"), ("of", node), ("node-role.kubernetes.io/worker", "")])
}

pub(crate) fn names(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{prefix}-{number:04}")).collect()
}

// === impl Theatre ===

impl Theatre {
    pub(crate) fn new(runtime: Runtime) -> Self {
        Self { stage: None, runtime }
    }

    /// Plays a case; `Some` says why it could not be played. After a failure the next case gets a
    /// new cluster, since this one may be in any state.
    pub(crate) fn play(&mut self, ground: Ground, case: Case) -> Result<Option<String>> {
        let mut stage = match self.stage.take() {
            Some((of, stage)) if of == ground => stage,
            other => {
                // Two API servers at once would be slow on a small machine.
                drop(other);
                match Scene::open("labels", &World::needs(ground))? {
                    Ok(scene) => self.runtime.block_on(Stage::set(Arc::new(scene), ground))?,
                    Err(reason) => return Ok(Some(reason)),
                }
            }
        };
        let outcome = self.runtime.block_on(stage.perform(case));
        if outcome.is_err() {
            stage.world.scene.on_failure();
        } else {
            self.stage = Some((ground, stage));
        }
        outcome.map(|()| None)
    }
}

// === impl Stage ===

impl Stage {
    async fn set(scene: Arc<Scene>, ground: Ground) -> Result<Self> {
        let world = World::start(scene, ground).await?;
        Ok(Self { world, watchers: Vec::new(), processors: Vec::new(), killed: Vec::new() })
    }

    async fn perform(&mut self, case: Case) -> Result<()> {
        (case.play)(self).await?;
        for replica in self.watchers.iter_mut().chain(&mut self.processors) {
            replica.ensure_alive()?;
        }
        Ok(())
    }

    pub(crate) fn cluster(&self) -> Cluster {
        self.world.cluster.clone()
    }

    /// Starts or stops replicas until this many of each run.
    pub(crate) async fn run(&mut self, watchers: usize, processors: usize) -> Result<()> {
        adjust(&mut self.world, Role::Watch, &mut self.watchers, watchers).await?;
        adjust(&mut self.world, Role::Process, &mut self.processors, processors).await
    }

    /// One of each, as most cases want it.
    pub(crate) async fn run_both(&mut self) -> Result<Cluster> {
        self.run(1, 1).await?;
        Ok(self.cluster())
    }

    /// What happens is queued and nothing is worked off.
    pub(crate) async fn run_watcher(&mut self) -> Result<Cluster> {
        self.run(1, 0).await?;
        Ok(self.cluster())
    }

    /// What is queued by hand is worked off, and nothing else is queued.
    pub(crate) async fn run_processor(&mut self) -> Result<Cluster> {
        self.run(0, 1).await?;
        Ok(self.cluster())
    }

    /// Kills a replica without warning. Returns as whom it held Leases, if it got so far.
    pub(crate) fn kill(&mut self, mut replica: Replica) -> Result<Option<String>> {
        let identity = identity(&mut replica)?;
        replica.kill()?;
        self.killed.extend(identity.clone());
        Ok(identity)
    }

    /// One write to each of these nodes, which nobody but the service writes to.
    ///
    /// The store is asked, and not the audit log alone: a replica that is killed while it asks is
    /// answered to nobody, and the log has a failure for a write that may have been carried out.
    /// The store counts what was.
    pub(crate) async fn restored_once(&self, nodes: &[String]) -> Result<()> {
        let versions = self.versions_of_nodes().await?;
        let mut answers = self.answers_to_node_patches()?;
        let wrong: Vec<_> = nodes
            .iter()
            .map(|node| (node, versions.get(node), answers.remove(node).unwrap_or_default()))
            .filter(|(_, version, codes)| {
                // A deleted incarnation's versions are gone; the log still has its writes.
                let answered = codes.iter().filter(|code| **code == 200).count();
                *version != Some(&RESTORED_ONCE) || answered > 1
            })
            .collect();
        ensure!(wrong.is_empty(), "restored more or less than once (version, answers): {wrong:?}");
        Ok(())
    }

    /// How often each live Node was written, its creation included.
    async fn versions_of_nodes(&self) -> Result<BTreeMap<String, i64>> {
        let (first, end) = NODE_KEYS;
        let request = RangeRequest {
            key: first.into(),
            range_end: end.into(),
            keys_only: true,
            ..RangeRequest::default()
        };
        let kvs = self.world.store.client()?.kv().range(request).await?.into_inner().kvs;
        let name = |key: &[u8]| String::from_utf8_lossy(&key[first.len()..]).into_owned();
        Ok(kvs.iter().map(|kv| (name(kv.key()), kv.version())).collect())
    }

    fn answers_to_node_patches(&self) -> Result<BTreeMap<String, Vec<u64>>> {
        let user = self.world.account(Role::Process);
        let mut answers: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for request in self.world.audit.follow()? {
            let request = request?;
            if request.user == user && request.verb == "patch" && request.resource == "nodes" {
                answers.entry(request.name).or_default().push(request.code);
            }
        }
        Ok(answers)
    }

    /// A copy of the store's data, taken while nothing runs; replicas are stopped.
    pub(crate) async fn back_up(&mut self, name: &str) -> Result<PathBuf> {
        let backup = self.world.scene.folder("backup")?.join(name);
        self.run(0, 0).await?;
        self.pause_cluster().await?;
        copy(self.world.store.data_dir(), &backup)?;
        self.resume_cluster().await?;
        Ok(backup)
    }

    /// The store as it was; replicas are stopped.
    pub(crate) async fn put_back(&mut self, backup: &PathBuf) -> Result<()> {
        self.run(0, 0).await?;
        self.put_back_under_replicas(backup).await
    }

    /// The store as it was. Whatever replicas run find the API server gone, and then a younger one.
    pub(crate) async fn put_back_under_replicas(&mut self, backup: &PathBuf) -> Result<()> {
        self.pause_cluster().await?;
        let data = self.world.store.data_dir().clone();
        std::fs::remove_dir_all(&data).context("remove the store's data")?;
        copy(backup, &data)?;
        self.resume_cluster().await
    }

    async fn pause_cluster(&mut self) -> Result<()> {
        self.world.server.kill()?;
        self.world.store.stop().await
    }

    async fn resume_cluster(&mut self) -> Result<()> {
        self.world.store.restart().await?;
        self.world.server.restart().await
    }
}

fn copy(from: &PathBuf, to: &PathBuf) -> Result<()> {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status().context("run cp")?;
    ensure!(status.success(), "cp: {status}");
    Ok(())
}

async fn adjust(
    world: &mut World,
    role: Role,
    replicas: &mut Vec<Replica>,
    count: usize,
) -> Result<()> {
    while replicas.len() > count {
        replicas.pop().context("more run than wanted")?.stop().await?;
    }
    while replicas.len() < count {
        replicas.push(world.replica(role).await?);
    }
    Ok(())
}
