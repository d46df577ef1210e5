//! The measurement itself, tiny: that every figure of it comes out.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::stage::{Stage, cases};

cases! {
    beside: [],
    alone: [
        the_benchmark_gives_every_figure,
    ],
}

async fn the_benchmark_gives_every_figure(stage: &mut Stage) -> Result<()> {
    // It brings its own sharder.
    stage.run(0).await?;
    let scratch = stage.world.scene.path().join("bench");
    let scratch = scratch.display().to_string();
    let arguments = ["bench", "sharding", "--quick", "--output=json", "--scratch", &scratch];
    let output = stage.world.command(&arguments).await?;
    let told = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{told}");
    let report: Value = serde_json::from_slice(&output.stdout).context("read the report")?;
    let list = |name: &str| report[name].as_array().map_or(0, Vec::len);
    ensure!(list("capacity") == 2 && list("evenness") == 5 && list("moves") == 3, "{report}");
    ensure!(list("crashes") == 1 && list("footprints") == 1, "{report}");
    ensure!(report["rolling"]["moved"] == 0, "{report}");
    ensure!(report["gap"]["moves"] != 0, "{report}");
    let capacity = report["capacity"][1]["per_second"].as_f64();
    ensure!(capacity.is_some_and(|rate| rate > 0.0), "{report}");
    Ok(())
}
