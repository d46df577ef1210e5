//! Client libraries, each in a program that speaks to every service and prints what it was told: on
//! etcd and on windlass the same words must come out.

use std::path::Path;
use std::process::Output;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::assets::Asset;
use e2e::scene::{Scene, suite};
use e2e::store::{Lane, Store, StoreOptions};
use tokio::process::Command;
use tokio::time::timeout;

/// No script waits for anything long.
const SCRIPT_WAIT: Duration = Duration::from_secs(60);

/// A script that fell silent would be alike everywhere.
const LINES_MIN: usize = 25;

#[test]
fn rust_etcd_client_is_told_the_same() {
    let needs = [Asset::EtcdClient, Lane::Etcd.asset(), Lane::Windlass.asset()];
    suite("rust_etcd_client_is_told_the_same", &needs, async |scene| {
        check(scene, async |store| {
            let program = scene.program(Asset::EtcdClient)?;
            run(Command::new(program).arg(store.endpoint())).await
        })
        .await
    });
}

#[test]
fn python_etcd3_is_told_the_same() {
    let needs = [Asset::PythonEtcd3, Lane::Etcd.asset(), Lane::Windlass.asset()];
    suite("python_etcd3_is_told_the_same", &needs, async |scene| {
        check(scene, async |store| {
            let script =
                Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/store/clients/python.py");
            let mut python = Command::new(scene.program(Asset::PythonEtcd3)?);
            run(python.arg(script).args(["127.0.0.1", &store.port().to_string()])).await
        })
        .await
    });
}

async fn check(scene: &Scene, speak: impl AsyncFn(&Store) -> Result<String>) -> Result<()> {
    let etcd = speak(&start(scene, Lane::Etcd).await?).await.context("on etcd")?;
    let windlass = speak(&start(scene, Lane::Windlass).await?).await.context("on windlass")?;
    ensure!(etcd.lines().count() >= LINES_MIN, "the script says too little:\n{etcd}");
    ensure!(etcd == windlass, "etcd:\n{etcd}\nwindlass:\n{windlass}");
    Ok(())
}

async fn start(scene: &Scene, lane: Lane) -> Result<Store> {
    let options = StoreOptions::new(lane, &format!("{lane:?}").to_lowercase())
        .flags(lane.without_sync())
        .flags(["--bcrypt-cost", "4"]);
    Store::start(scene, &options).await
}

/// What a program printed; what it complains of counts only if it fails.
async fn run(command: &mut Command) -> Result<String> {
    let running = timeout(SCRIPT_WAIT, command.kill_on_drop(true).output()).await;
    let Output { status, stdout, stderr } =
        running.context("the script does not end")?.context("start the script")?;
    let (said, complaint) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    ensure!(status.success(), "{status}\n{said}\n{complaint}");
    Ok(said.into_owned())
}
