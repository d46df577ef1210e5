//! The measurement itself, tiny: that every figure of it comes out.

use anyhow::{Context, Result, ensure};
use e2e::assets::Asset;
use e2e::scene::Scene;
use e2e::tasks::command::Said;
use serde_json::Value;
use tokio::process::Command;

use crate::stage::cases;

cases! { the_benchmark_gives_every_figure }

async fn the_benchmark_gives_every_figure(scene: &Scene) -> Result<()> {
    let mut command = Command::new(scene.program(Asset::Windlass)?);
    command.args(["bench", "tasks", "--quick", "-o", "json", "--scratch"]);
    let output = command.arg(scene.path().join("bench")).kill_on_drop(true).output().await;
    let said = Said::from(output.context("run windlass")?);
    ensure!(said.code == Some(0), "{said:?}");
    let report: Value = serde_json::from_str(&said.stdout).context("read the report")?;
    ensure!(report["crowd"]["tasks"] == 200 && report["processes"]["tasks"] == 200, "{report}");
    ensure!(report["containers"][0]["program"] == "windlass", "{report}");
    let losses = report["losses"].as_array().context("a list")?;
    ensure!(losses.len() == 2 && losses.iter().all(|loss| loss["tasks"] != 0), "{report}");
    Ok(())
}
