//! What the cases share: one cluster per lane, and the sharders that run on it.

use std::sync::Arc;

use anyhow::{Context, Result};
use e2e::replica::Replica;
use e2e::scene::Scene;
use e2e::sharding::{Arena, World};
use e2e::store::Lane;
use futures::future::LocalBoxFuture;
use serde_json::Value;
use tokio::runtime::Runtime;

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

/// The stage of the lane that is being played, if any.
pub(crate) struct Theatre {
    stage: Option<(Lane, Stage)>,
    runtime: Runtime,
}

/// A cluster, and the sharders of the current case. The first that was started leads, until
/// somebody ends it.
pub(crate) struct Stage {
    pub(crate) world: World,
    pub(crate) sharders: Vec<Replica>,
}

// === impl Theatre ===

impl Theatre {
    pub(crate) fn new(runtime: Runtime) -> Self {
        Self { stage: None, runtime }
    }

    /// Plays a case; `Some` says why it could not be played. After a failure the next case gets a
    /// new cluster, since this one may be in any state.
    pub(crate) fn play(&mut self, lane: Lane, case: Case) -> Result<Option<String>> {
        let mut stage = match self.stage.take() {
            Some((of, stage)) if of == lane => stage,
            other => {
                // Two API servers at once would be slow on a small machine.
                drop(other);
                match Scene::open("sharding", &World::needs(lane))? {
                    Ok(scene) => self.runtime.block_on(Stage::set(Arc::new(scene), lane))?,
                    Err(reason) => return Ok(Some(reason)),
                }
            }
        };
        let outcome = self.runtime.block_on(stage.perform(case));
        if outcome.is_err() {
            stage.world.scene.on_failure();
        } else {
            self.stage = Some((lane, stage));
        }
        outcome.map(|()| None)
    }
}

// === impl Stage ===

impl Stage {
    async fn set(scene: Arc<Scene>, lane: Lane) -> Result<Self> {
        Ok(Self { world: World::start(scene, lane).await?, sharders: Vec::new() })
    }

    async fn perform(&mut self, case: Case) -> Result<()> {
        (case.play)(self).await?;
        self.sharders.iter_mut().try_for_each(Replica::ensure_alive)
    }

    /// Starts or stops sharders until this many run.
    pub(crate) async fn run(&mut self, count: usize) -> Result<()> {
        while self.sharders.len() > count {
            self.sharders.pop().context("more run than wanted")?.stop().await?;
        }
        while self.sharders.len() < count {
            self.sharders.push(self.world.sharder().await?);
        }
        Ok(())
    }

    /// A ring of its own for the case, and a sharder that runs it.
    pub(crate) async fn arena(&mut self, name: &str, changes: &Value) -> Result<Arena> {
        self.run(1).await?;
        Arena::open(&self.world, name, changes).await
    }
}
