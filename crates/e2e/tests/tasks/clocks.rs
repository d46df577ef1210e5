//! Wall clocks that step. Each node has its own: a library that is loaded before the C library's moves
//! what the node reads, since stepping the machine's would disturb everything else on it, and the
//! kernel's namespaces know of no other wall clock.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use e2e::scene::Scene;
use e2e::tasks::cluster::{Cluster, ClusterOptions, TTL};
use e2e::tasks::ledger::Work;
use e2e::wait::pass;

use crate::stage::cases;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tasks/clock.c");
const HOUR_SECONDS: i64 = 3600;

cases! { clock_steps_of_an_hour }

/// Leases, deadlines and attempts do not notice: none of them is measured on the wall.
async fn clock_steps_of_an_hour(scene: &Scene) -> Result<()> {
    let library = compile(scene)?;
    let clocks: Vec<PathBuf> =
        (0..3).map(|number| scene.path().join(format!("clock-{number}"))).collect();
    clocks.iter().try_for_each(|clock| set(clock, 0))?;
    let environment = |clock: &PathBuf| {
        let library = library.display().to_string();
        let clock = clock.display().to_string();
        vec![("LD_PRELOAD".to_owned(), library), ("E2E_CLOCK".to_owned(), clock)]
    };
    let environments = clocks.iter().map(environment).collect();
    let options = ClusterOptions { environments, ..Default::default() };
    let mut cluster = Cluster::start(scene, &options).await?;
    let ids = cluster.submit(12, Work::of(30)).await?;
    cluster.wait_began(&ids).await?;
    for (ahead, behind) in [(HOUR_SECONDS, -HOUR_SECONDS), (-HOUR_SECONDS, HOUR_SECONDS), (0, 0)] {
        set(&clocks[0], ahead)?;
        set(&clocks[1], behind)?;
        let meanwhile = cluster.submit(6, Work::of(1)).await?;
        cluster.wait_ended(&meanwhile).await?;
        pass(TTL / 2).await?;
    }
    let stepped = cluster.tasks().await?;
    let submitted = stepped.iter().filter_map(|view| view.task.as_ref());
    let times: Vec<i64> = submitted.map(|task| task.submitted_at_ms).collect();
    let spread = times.iter().max().zip(times.iter().min()).map_or(0, |(max, min)| max - min);
    ensure!(spread > HOUR_SECONDS * 1000, "no clock was stepped: {spread} ms");
    let tally = cluster.judge(scene).await?;
    ensure!(tally.complete == 30 && tally.attempts == 30, "tasks were disturbed: {tally:?}");
    Ok(())
}

/// With the compiler that links every Rust program here.
fn compile(scene: &Scene) -> Result<PathBuf> {
    let library = scene.path().join("clock.so");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).args([SOURCE, "-ldl"]);
    ensure!(cc.status().context("run cc")?.success(), "the clock cannot be compiled");
    Ok(library)
}

/// In place and never shorter: nodes have it mapped.
fn set(clock: &Path, seconds: i64) -> Result<()> {
    let mut file = File::options().create(true).write(true).truncate(false).open(clock)?;
    file.write_all(&seconds.to_le_bytes()).context("set a clock")
}
