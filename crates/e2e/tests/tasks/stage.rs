//! What the cases share: how one is played, and a machine on which `windlass up` runs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::assets::Asset;
use e2e::ports;
use e2e::process::{Process, Program};
use e2e::scene::Scene;
use e2e::tasks::command::Windlass;
use e2e::tasks::lacks_root;
use e2e::tasks::traces::Traces;
use e2e::wait::{Level, wait_for};
use futures::future::LocalBoxFuture;
use rustix::process::Signal;
use serde_json::Value;
use tokio::runtime::Runtime;

/// For anything that should take a second, on a machine that is busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// One named test.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) needs: &'static [Asset],
    pub(crate) play: for<'s> fn(&'s Scene) -> LocalBoxFuture<'s, Result<()>>,
}

/// Lists functions as cases under their own names.
macro_rules! cases {
    ($($case:ident),+ $(,)?) => {
        $crate::stage::cases! { needs [e2e::assets::Asset::Windlass]; $($case),+ }
    };
    (needs $needs:expr; $($case:ident),+ $(,)?) => {
        pub(crate) fn cases() -> Vec<$crate::stage::Case> {
            vec![$($crate::stage::Case {
                name: stringify!($case),
                needs: &$needs,
                play: |scene| Box::pin($case(scene)),
            }),+]
        }
    };
}
pub(crate) use cases;

/// `windlass up` as a process.
pub(crate) struct Up {
    pub(crate) windlass: Windlass,
    pub(crate) process: Process,
    pub(crate) data_dir: PathBuf,
    folder: PathBuf,
}

// === impl Case ===

impl Case {
    /// `Some` says why it could not be played; under continuous integration that is a failure.
    pub(crate) fn play(self) -> Result<Option<String>> {
        if let Some(reason) = lacks_root() {
            ensure!(!is_ci(), "{}: {reason}", self.name);
            return Ok(Some(reason.to_owned()));
        }
        let scene = match Scene::open(self.name, self.needs)? {
            Ok(scene) => scene,
            Err(reason) => return Ok(Some(reason)),
        };
        let runtime = Runtime::new().context("make a runtime")?;
        let outcome = runtime.block_on((self.play)(&scene));
        if outcome.is_err() {
            scene.on_failure();
        }
        outcome.map(|()| None)
    }
}

fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}

// === impl Up ===

impl Up {
    pub(crate) async fn start(scene: &Scene) -> Result<Self> {
        Self::start_of(scene, &[], &scene.program(Asset::Windlass)?).await
    }

    /// Another binary, with these words before it.
    pub(crate) async fn start_of(scene: &Scene, prefix: &[&str], binary: &Path) -> Result<Self> {
        let [port] = ports::free()?;
        let folder = scene.folder("up")?;
        let (data_dir, socket) = (folder.join("data"), folder.join("node.sock"));
        let mut words: Vec<String> = prefix.iter().map(ToString::to_string).collect();
        words.extend([binary.display().to_string(), "up".to_owned()]);
        words.extend([format!("--listen=127.0.0.1:{port}")]);
        words.push(format!("--data-dir={}", data_dir.display()));
        words.push(format!("--socket={}", socket.display()));
        let process = Process::start(&Program {
            name: "up".to_owned(),
            path: PathBuf::from(words.remove(0)),
            arguments: words,
            environment: Vec::new(),
            log_folder: scene.folder("logs")?,
        })?;
        let windlass = Windlass::asking(scene, &format!("unix://{}", socket.display()))?;
        let mut up = Self { windlass, process, data_dir, folder: scene.path().to_owned() };
        up.wait_ready().await?;
        Ok(up)
    }

    async fn wait_ready(&mut self) -> Result<()> {
        let Self { windlass, process, .. } = self;
        wait_for("a node to be there", PATIENCE, async || {
            process.ensure_alive()?;
            let said = windlass.call(&["nodes"], &["-o", "json"]).await?;
            let nodes: Option<Value> = serde_json::from_str(&said.stdout).ok();
            let count = nodes.and_then(|nodes| Some(nodes.as_array()?.len())).unwrap_or(0);
            Ok(if count == 1 { Level::Reached(()) } else { Level::Below(format!("{said:?}")) })
        })
        .await
    }

    /// Waits until a task is in this state.
    pub(crate) async fn wait_state(&self, id: &str, state: &str) -> Result<Value> {
        wait_state(&self.windlass, id, state).await
    }

    /// Ctrl-C as a terminal sends it: to everything in the foreground. Then nothing is left.
    pub(crate) async fn interrupt(mut self) -> Result<()> {
        let host_id = std::fs::read_to_string(self.data_dir.join("tasks/host-id"));
        let host_id = host_id.context("read the host id")?.trim().to_owned();
        self.process.signal(Signal::INT)?;
        let status = self.process.wait_end(PATIENCE).await?;
        ensure!(status.success(), "up ended with {status}: {}", self.process.log()?);
        drop(self.process);
        Traces { folder: self.folder, host_ids: vec![host_id] }.wait_gone().await
    }
}

/// Waits until a task is in this state.
pub(crate) async fn wait_state(windlass: &Windlass, id: &str, state: &str) -> Result<Value> {
    wait_for(&format!("task {id} to be {state}"), PATIENCE, async || {
        let task = windlass.json(&["task", "status"], &[id]).await?;
        Ok(if task["state"] == state {
            Level::Reached(task)
        } else {
            Level::Below(task.to_string())
        })
    })
    .await
}
