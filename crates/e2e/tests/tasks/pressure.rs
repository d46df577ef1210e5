//! Tasks that take all there is, and a disk that has none: their node goes on, and so do the others.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use e2e::assets::Asset;
use e2e::scene::Scene;
use e2e::tasks::cluster::{Cluster, ClusterOptions};
use e2e::tasks::command::Windlass;
use e2e::tasks::ledger::Work;
use e2e::wait::{Level, wait_for};

use crate::stage::{PATIENCE, Up, cases, wait_state};

/// Twice what a node leaves free: half of it is there for tasks.
const DISK: &str = "size=5g";

/// Filled piece by piece, while others write as well.
const LAST_BYTES: u64 = 8 << 20;

/// What is kept of a log: ten files of ten million bytes, and their heads.
const LOG_BYTES_MAX: u64 = 101_000_000;

cases! {
    needs [Asset::Windlass];
    no_space_for_logs,
    a_billion_bytes_of_log,
    fork_bomb,
    memory_hogs,
}

/// A small disk of its own; it is taken off again.
struct Disk<'a>(&'a Path);

impl<'a> Disk<'a> {
    fn mount(folder: &'a Path) -> Result<Self> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", DISK, "e2e"]).arg(folder);
        ensure!(mount.status().context("run mount")?.success(), "no disk can be mounted");
        Ok(Self(folder))
    }

    /// Takes all that is left.
    fn fill(&self) -> Result<()> {
        let free = rustix::fs::statvfs(self.0).context("look at the disk")?;
        let most = (free.f_bavail * free.f_frsize).saturating_sub(LAST_BYTES);
        let mut fallocate = Command::new("fallocate");
        let filled = fallocate.args(["-l", &most.to_string()]).arg(self.filler()).status();
        ensure!(filled.context("run fallocate")?.success(), "the disk cannot be filled");
        // Logs take of the rest, too.
        let mut filler = File::options().append(true).open(self.filler()).context("open it")?;
        loop {
            match filler.write(&[0; 4096]) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::StorageFull => return Ok(()),
                Err(error) => return Err(error).context("fill the disk"),
            }
        }
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }

    fn free(&self) -> Result<()> {
        fs::remove_file(self.filler()).context("free the disk")
    }
}

impl Drop for Disk<'_> {
    fn drop(&mut self) {
        // Lazily: a node that failed the test may still have files open.
        if let Err(error) = Command::new("umount").arg("-l").arg(self.0).status() {
            e2e::report::say(&format!("umount {}: {error}", self.0.display()));
        }
    }
}

/// Output is dropped and the gap told; the task notices nothing, and nothing is claimed meanwhile.
async fn no_space_for_logs(scene: &Scene) -> Result<()> {
    // Not the scene's: a mount there would count as left behind.
    let folder = tempfile::tempdir().context("make a folder")?;
    let disk = Disk::mount(folder.path())?;
    let data_dir = Some(folder.path().join("data"));
    let options = ClusterOptions { nodes: 1, data_dir, ..Default::default() };
    let mut cluster = Cluster::start(scene, &options).await?;
    let quiet = cluster.submit(3, Work::of(8)).await?;
    cluster.wait_began(&quiet).await?;
    let windlass = Windlass::asking(scene, &cluster.nodes[0].address())?;
    let chatter = "sleep 1; i=0; while [ $i -lt 40 ]; do head -c 100000 /dev/zero; sleep 0.1; \
                   i=$((i+1)); done; sleep 4; echo after";
    let id = windlass.detach(&["--cpus", "0.01", "--", "sh", "-c", chatter]).await?;
    wait_state(&windlass, &id, "running").await?;
    disk.fill()?;
    let waiting = cluster.submit(3, Work::of(1)).await?;
    cluster.wait_ended(&quiet).await?;
    ensure!(!has_begun(&cluster, &waiting), "tasks are claimed without space");
    wait_for("the reason to be told", PATIENCE, async || {
        let told = windlass.json(&["task", "explain"], &[&waiting[0]]).await?;
        let is_told = told["nodes"][0]["obstacles"][0] == "the data directory is almost full";
        Ok(if is_told { Level::Reached(()) } else { Level::Below(told.to_string()) })
    })
    .await?;
    disk.free()?;
    wait_state(&windlass, &id, "complete").await?;
    let log = windlass.call(&["task", "logs"], &["-o", "json", &id]).await?;
    ensure!(log.stdout.contains("gap_bytes"), "no gap is told");
    cluster.wait_finished().await?;
    let tally = cluster.judge(scene).await?;
    ensure!(tally.complete == 6, "{tally:?}");
    drop(disk);
    Ok(())
}

fn has_begun(cluster: &Cluster, ids: &[String]) -> bool {
    cluster.ledger.signs().iter().any(|sign| ids.contains(&sign.task))
}

/// Old output goes for new; the task never waits for anybody.
async fn a_billion_bytes_of_log(scene: &Scene) -> Result<()> {
    let up = Up::start(scene).await?;
    let flood = "head -c 1000000000 /dev/zero; echo; echo last";
    let id = up.windlass.detach(&["--", "sh", "-c", flood]).await?;
    let beside = up.windlass.run(&["--", "echo", "beside"]).await?;
    ensure!(beside.stdout == "beside\n", "{beside:?}");
    wait_for("the flood to be over", 4 * PATIENCE, async || {
        let task = up.windlass.json(&["task", "status"], &[&id]).await?;
        let is_over = task["state"] == "complete";
        Ok(if is_over { Level::Reached(()) } else { Level::Below(task.to_string()) })
    })
    .await?;
    let kept = disk_use(&up.data_dir.join("tasks/tasks").join(&id))?;
    ensure!(kept <= LOG_BYTES_MAX, "{kept} bytes are kept");
    let tail = up.windlass.call(&["task", "logs"], &["--tail", "1", &id]).await?;
    ensure!(tail.stdout == "last\n", "{} bytes", tail.stdout.len());
    up.interrupt().await
}

fn disk_use(folder: &Path) -> Result<u64> {
    let mut total = 0;
    for entry in fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))? {
        let entry = entry.context("list a folder")?;
        let metadata = entry.metadata().context("look at a file")?;
        total += if metadata.is_dir() { disk_use(&entry.path())? } else { metadata.len() };
    }
    Ok(total)
}

async fn fork_bomb(scene: &Scene) -> Result<()> {
    let up = Up::start(scene).await?;
    let bomb = "bomb() { bomb | bomb & }; bomb; sleep 600";
    let arguments = ["--pids", "64", "--grace", "1s", "--", "bash", "-c", bomb];
    let id = up.windlass.detach(&arguments).await?;
    up.wait_state(&id, "running").await?;
    let beside = up.windlass.run(&["--", "echo", "beside"]).await?;
    ensure!(beside.code == Some(0) && beside.stdout == "beside\n", "{beside:?}");
    ensure!(up.windlass.call(&["task", "cancel"], &[&id]).await?.code == Some(0));
    wait_for("the last of them to be gone", PATIENCE, async || {
        let task = up.windlass.json(&["task", "status"], &[&id]).await?;
        let is_gone = !task["stopped_at"].is_null();
        Ok(if is_gone { Level::Reached(()) } else { Level::Below(task.to_string()) })
    })
    .await?;
    up.interrupt().await
}

/// Each is killed, and says so; what runs beside them is not.
async fn memory_hogs(scene: &Scene) -> Result<()> {
    let options = ClusterOptions { nodes: 1, ..Default::default() };
    let mut cluster = Cluster::start(scene, &options).await?;
    cluster.submit(5, Work::of(8)).await?;
    let windlass = Windlass::asking(scene, &cluster.nodes[0].address())?;
    let dd = ["dd", "if=/dev/zero", "of=/dev/null", "bs=400M"];
    let hog = [&["--cpus", "0.01", "--memory", "32MiB", "--"][..], &dd].concat();
    let mut hogs = Vec::new();
    for _ in 0..6 {
        hogs.push(windlass.detach(&hog).await?);
    }
    for id in &hogs {
        let task = wait_state(&windlass, id, "complete").await?;
        ensure!(task["oom_killed"] == true, "{task}");
    }
    let tally = cluster.judge(scene).await?;
    ensure!(tally.complete == 5 && tally.attempts == 5, "{tally:?}");
    Ok(())
}
