//! What a person does on one machine: `windlass up` in one terminal, `windlass run` in another.

use anyhow::{Context, Result, ensure};
use e2e::scene::Scene;
use e2e::wait::{Level, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Child;
use tokio::time::timeout;

use crate::stage::{PATIENCE, Up, cases};

/// A command that only KILL ends.
const STUBBORN: &str = "trap '' TERM; echo up; while :; do sleep 1; done";

/// Long enough to be seen, and less than a machine that is shut down is waited for: it grants it too.
const GRACE: &str = "15s";

cases! {
    a_listing_comes_from_inside_a_container,
    exit_codes_come_through,
    a_command_that_takes_too_much_memory_is_killed_and_says_so,
    logs_are_followed_to_the_end,
    cancel_stops_what_runs,
    interrupting_run_cancels,
    interrupting_run_twice_leaves,
    tasks_are_listed_waited_for_and_explained,
    nothing_answers_without_a_node,
    interrupting_up_leaves_nothing,
}

async fn a_listing_comes_from_inside_a_container(scene: &Scene) -> Result<()> {
    let up = Up::start(scene).await?;
    for form in [&["--", "ls", "-l"][..], &["ls", "--", "-l"], &["ls", "-l"]] {
        let said = up.windlass.run(form).await?;
        ensure!(said.code == Some(0), "{form:?}: {said:?}");
        let has = |name: &str| said.stdout.lines().any(|line| line.ends_with(name));
        ensure!(has(" proc") && has(" usr"), "no listing of a root: {}", said.stdout);
        ensure!(!has(" root") && !has(" home"), "the machine shows: {}", said.stdout);
    }
    let said = up.windlass.run(&["--", "sh", "-c", "id -u; hostname; ls /proc | grep -c '^[0-9]'"]);
    let said = said.await?;
    let lines: Vec<&str> = said.stdout.lines().collect();
    ensure!(lines.first() == Some(&"65534"), "who it is: {said:?}");
    let processes: usize = lines.last().context("it counts")?.parse().context("a number")?;
    ensure!(processes <= 6, "it sees {processes} processes");
    up.interrupt().await
}

async fn exit_codes_come_through(scene: &Scene) -> Result<()> {
    let up = Up::start(scene).await?;
    for (arguments, code) in [
        (&["--", "true"][..], 0),
        (&["--", "sh", "-c", "exit 7"], 7),
        (&["--wait", "--", "sh", "-c", "echo unseen; exit 255"], 255),
        (&["--", "sh", "-c", "kill -TERM $$"], 143),
        (&["--timeout", "1s", "--grace", "1s", "--", "sleep", "60"], 124),
        (&["--", "/no/such/program"], 125),
        (&["--memory", "lots", "--", "true"], 2),
        (&[], 2),
    ] {
        let said = up.windlass.run(arguments).await?;
        ensure!(said.code == Some(code), "{arguments:?}: {said:?}");
        ensure!(!said.stdout.contains("unseen"), "{said:?}");
        ensure!(code == 0 || code == 7 || code == 255 || !said.stderr.is_empty(), "{said:?}");
    }
    up.interrupt().await
}

async fn a_command_that_takes_too_much_memory_is_killed_and_says_so(scene: &Scene) -> Result<()> {
    let up = Up::start(scene).await?;
    let hog = ["--memory", "64MiB", "--", "dd", "if=/dev/zero", "of=/dev/null", "bs=200M"];
    let said = up.windlass.run(&hog).await?;
    ensure!(said.stderr.contains("killed: it took more memory than 64MiB"), "{said:?}");
    ensure!(said.code == Some(137), "{said:?}");
    let modest = "head -c 200000000 /dev/zero | tail -c 200000000 | wc -c";
    let fits = up.windlass.run(&["--memory", "512MiB", "--", "sh", "-c", modest]).await?;
    ensure!(fits.code == Some(0) && fits.stdout.trim() == "200000000", "{fits:?}");
    up.interrupt().await
}

async fn logs_are_followed_to_the_end(scene: &Scene) -> Result<()> {
    let up = Up::start(scene).await?;
    let script = "echo first; echo aside >&2; sleep 2; echo last";
    let id = up.windlass.detach(&["--", "sh", "-c", script]).await?;
    let said = up.windlass.call(&["task", "logs"], &["-f", &id]).await?;
    ensure!(said.code == Some(0), "{said:?}");
    ensure!(said.stdout == "first\nlast\n" && said.stderr == "aside\n", "{said:?}");
    let tail = ["--tail", "1", "--stream", "stdout", &id];
    ensure!(up.windlass.call(&["task", "logs"], &tail).await?.stdout == "last\n");
    let prefix = up.windlass.call(&["task", "logs"], &["--stream", "stderr", &id[..8]]).await?;
    ensure!(prefix.stdout.is_empty() && prefix.stderr == "aside\n", "{prefix:?}");
    let bytes = up.windlass.run(&["--", "sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' x"]);
    ensure!(bytes.await?.stdout.len() == 1_000_000);
    up.interrupt().await
}

async fn cancel_stops_what_runs(scene: &Scene) -> Result<()> {
    let up = Up::start(scene).await?;
    let id = up.windlass.detach(&["--grace", "1s", "--", "sh", "-c", STUBBORN]).await?;
    wait_until_up(&up, &id).await?;
    let said = up.windlass.call(&["task", "cancel"], &[&id]).await?;
    ensure!(said.code == Some(0), "{said:?}");
    let again = up.windlass.call(&["task", "cancel"], &[&id]).await?;
    ensure!(again.code == Some(0), "repeating it is success: {again:?}");
    wait_for("its owner to see the last process gone", PATIENCE, async || {
        let task = up.windlass.json(&["task", "status"], &[&id]).await?;
        ensure!(task["state"] == "canceled", "{task}");
        let is_stopped = !task["stopped_at"].is_null();
        Ok(if is_stopped { Level::Reached(()) } else { Level::Below(task.to_string()) })
    })
    .await?;
    let waited = up.windlass.call(&["task", "wait"], &[&id]).await?;
    ensure!(waited.code == Some(1), "{waited:?}");
    let logs = up.windlass.call(&["task", "logs"], &["-f", &id]).await?;
    ensure!(logs.stdout == "up\n", "following a canceled task ends: {logs:?}");
    up.interrupt().await
}

async fn interrupting_run_cancels(scene: &Scene) -> Result<()> {
    let up = Up::start(scene).await?;
    let (child, id) = begin(&up, &["--", "sleep", "600"]).await?;
    interrupt(&child)?;
    let ended = timeout(PATIENCE, child.wait_with_output()).await.context("run does not end")??;
    ensure!(ended.status.code() == Some(125), "{ended:?}");
    let task = up.wait_state(&id, "canceled").await?;
    ensure!(!task["stopped_at"].is_null(), "it waits for the end: {task}");
    up.interrupt().await
}

/// Whether its output is followed or not.
async fn interrupting_run_twice_leaves(scene: &Scene) -> Result<()> {
    let up = Up::start(scene).await?;
    for mode in ["--follow", "--wait"] {
        let stubborn = [mode, "--grace", GRACE, "--", "sh", "-c", STUBBORN];
        let (child, id) = begin(&up, &stubborn).await?;
        wait_until_up(&up, &id).await?;
        interrupt(&child)?;
        let task = up.wait_state(&id, "canceled").await?;
        ensure!(task["stopped_at"].is_null(), "{mode}: its grace is not over: {task}");
        interrupt(&child)?;
        let ended = timeout(PATIENCE, child.wait_with_output()).await;
        let ended = ended.context("run does not end")??;
        let words = String::from_utf8_lossy(&ended.stderr);
        ensure!(ended.status.code() == Some(125) && words.contains("left before"), "{ended:?}");
        let task = up.windlass.json(&["task", "status"], &[&id]).await?;
        ensure!(task["stopped_at"].is_null(), "{mode}: nobody waited for it: {task}");
    }
    up.interrupt().await
}

/// What is [`STUBBORN`] ignores TERM only once it has said so.
async fn wait_until_up(up: &Up, id: &str) -> Result<()> {
    wait_for("it to ignore TERM", PATIENCE, async || {
        let said = up.windlass.call(&["task", "logs"], &[id]).await?;
        let is_up = said.stdout == "up\n";
        Ok(if is_up { Level::Reached(()) } else { Level::Below(format!("{said:?}")) })
    })
    .await
}

/// `windlass run` and the task it waits for, which runs.
async fn begin(up: &Up, arguments: &[&str]) -> Result<(Child, String)> {
    let child = up.windlass.command(&["run"], arguments).spawn().context("start run")?;
    let id = wait_for("the task to run", PATIENCE, async || {
        let tasks = up.windlass.json(&["task", "list"], &["--status", "running"]).await?;
        Ok(match tasks[0]["id"].as_str() {
            Some(id) => Level::Reached(id.to_owned()),
            None => Level::Below(tasks.to_string()),
        })
    })
    .await?;
    Ok((child, id))
}

fn interrupt(child: &Child) -> Result<()> {
    let process = Pid::from_raw(i32::try_from(child.id().context("it runs")?)?);
    kill_process(process.context("a process has a number")?, Signal::INT).context("interrupt")
}

async fn tasks_are_listed_waited_for_and_explained(scene: &Scene) -> Result<()> {
    let up = Up::start(scene).await?;
    let windlass = &up.windlass;
    let good = windlass.detach(&["--label", "kind=good", "--", "true"]).await?;
    let bad = windlass.detach(&["--label", "kind=bad", "--", "false"]).await?;
    ensure!(windlass.call(&["task", "wait"], &[&good]).await?.code == Some(0));
    ensure!(windlass.call(&["task", "wait"], &[&good, &bad]).await?.code == Some(1));
    let list = windlass.json(&["task", "list"], &["--label", "kind=bad"]).await?;
    ensure!(list.as_array().is_some_and(|all| all.len() == 1) && list[0]["id"] == *bad, "{list}");
    let huge = windlass.detach(&["--memory", "4TiB", "--", "true"]).await?;
    let why = windlass.json(&["task", "explain"], &[&huge]).await?;
    ensure!(why["unsatisfiable"] == true, "{why}");
    let obstacles = why["nodes"][0]["obstacles"].as_array().context("it says why")?;
    ensure!(!obstacles.is_empty(), "{why}");
    let text = windlass.call(&["task", "explain"], &[&huge]).await?;
    ensure!(text.stdout.contains("UNSATISFIABLE"), "{text:?}");
    let text = windlass.call(&["task", "explain"], &[&bad]).await?;
    ensure!(text.stdout.contains("exit code 1: it waits for no node"), "{text:?}");
    let waited = windlass.call(&["task", "wait"], &["--timeout", "1s", &huge]).await?;
    ensure!(waited.code == Some(1), "{waited:?}");
    ensure!(windlass.call(&["task", "cancel"], &[&huge]).await?.code == Some(0));
    let nodes = windlass.json(&["nodes"], &[]).await?;
    ensure!(nodes[0]["runtime"] == "native" && nodes[0]["limits_enforced"] == true, "{nodes}");
    ensure!(windlass.call(&["task", "fsck"], &[]).await?.code == Some(0));
    let removed = windlass.json(&["task", "gc"], &["--older-than", "0s"]).await?;
    ensure!(removed["deleted"].as_u64().is_some_and(|count| count >= 2), "{removed}");
    up.interrupt().await
}

async fn nothing_answers_without_a_node(scene: &Scene) -> Result<()> {
    let nobody = format!("unix://{}/nobody.sock", scene.path().display());
    let windlass = e2e::tasks::command::Windlass::asking(scene, &nobody)?;
    let said = windlass.call(&["nodes"], &[]).await?;
    ensure!(
        said.code == Some(3) && said.stderr.contains("start one with `windlass up`"),
        "{said:?}"
    );
    Ok(())
}

/// A terminal interrupts everything in the foreground, shims included.
async fn interrupting_up_leaves_nothing(scene: &Scene) -> Result<()> {
    let up = Up::start(scene).await?;
    let id = up.windlass.detach(&["--grace", "1s", "--", "sleep", "600"]).await?;
    up.wait_state(&id, "running").await?;
    up.interrupt().await
}
