//! Disks that fill up, files that were damaged, folders that are taken.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use e2e::client::Client;
use e2e::scene::{Scene, skip, suite};
use e2e::store::{Lane, Store, StoreOptions};
use etcd_api::etcdserverpb as pb;

/// Small enough to be filled in seconds.
const DISK_BYTES: usize = 64 * 1024 * 1024;
const VALUE_BYTES: usize = 256 * 1024;

/// More writes than the disk can take.
const WRITES_MAX: usize = 4 * DISK_BYTES / VALUE_BYTES;

/// How long a store that cannot go on may take to end.
const END_WAIT: Duration = Duration::from_secs(30);

#[test]
fn windlass_survives_a_full_disk() {
    let name = "windlass_survives_a_full_disk";
    suite(name, &[Lane::Windlass.asset()], async |scene| match SmallDisk::mount(scene)? {
        Ok(disk) => check_full_disk(scene, &disk).await,
        Err(reason) => {
            skip(name, &reason);
            Ok(())
        }
    });
}

#[test]
fn windlass_refuses_damaged_files() {
    suite("windlass_refuses_damaged_files", &[Lane::Windlass.asset()], async |scene| {
        check_damage(scene).await
    });
}

#[test]
fn windlass_refuses_a_folder_in_use() {
    suite("windlass_refuses_a_folder_in_use", &[Lane::Windlass.asset()], async |scene| {
        let first = Store::start(scene, &StoreOptions::new(Lane::Windlass, "first")).await?;
        let options = StoreOptions {
            data_dir: Some(first.data_dir().clone()),
            ..StoreOptions::new(Lane::Windlass, "second")
        };
        let mut second = Store::prepare(scene, &options)?;
        second.launch()?;
        let status = second.process()?.wait_end(END_WAIT).await?;
        ensure!(!status.success(), "a second store on one folder ended with {status}");
        put(&first.client()?, "a", 1).await?;
        Ok(())
    });
}

/// A mounted file system of its own, unmounted when dropped.
struct SmallDisk {
    place: PathBuf,
}

// === impl SmallDisk ===

impl SmallDisk {
    /// The reason why not, if this user may not mount.
    fn mount(scene: &Scene) -> Result<Result<Self, String>> {
        let place = scene.folder("disk")?;
        let size = format!("size={DISK_BYTES}");
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(&place)
            .output()
            .context("run mount")?;
        if mount.status.success() {
            return Ok(Ok(Self { place }));
        }
        Ok(Err(format!("mount: {}", String::from_utf8_lossy(&mount.stderr).trim())))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let status = Command::new("umount").arg("--lazy").arg(&self.place).status();
        assert!(status.is_ok_and(|status| status.success()), "umount {}", self.place.display());
    }
}

/// Writes until it is refused or the store stops; what was acknowledged must be there again once
/// there is room.
async fn check_full_disk(scene: &Scene, disk: &SmallDisk) -> Result<()> {
    let ballast = disk.place.join("ballast");
    fs::write(&ballast, vec![0; DISK_BYTES / 4]).context("write the ballast")?;
    let options = StoreOptions {
        data_dir: Some(disk.place.join("data")),
        ..StoreOptions::new(Lane::Windlass, "store")
    };
    let mut store = Store::start(scene, &options).await?;
    let mut kept = 0;
    let client = store.client()?;
    while kept < WRITES_MAX && put(&client, &format!("k{kept:05}"), VALUE_BYTES).await.is_ok() {
        kept += 1;
    }
    ensure!(kept < WRITES_MAX, "the disk never filled");
    fs::remove_file(&ballast).context("make room")?;
    if store.process()?.ensure_alive().is_ok() {
        store.stop().await?;
    } else {
        // It stopped by itself, as it must after a failed write; what is left is to collect it.
        store.kill()?;
    }
    store.restart().await?;
    let request = pb::RangeRequest {
        key: "k".into(),
        range_end: "l".into(),
        count_only: true,
        ..Default::default()
    };
    let count = store.client()?.kv().range(request).await?.into_inner().count;
    let count = usize::try_from(count)?;
    ensure!(count == kept || count == kept + 1, "{kept} acknowledged, {count} kept");
    Ok(())
}

/// One damaged byte in the middle of the largest file: the store must refuse to start and name it.
async fn check_damage(scene: &Scene) -> Result<()> {
    let mut store = Store::start(scene, &StoreOptions::new(Lane::Windlass, "store")).await?;
    let client = store.client()?;
    for number in 0..200 {
        put(&client, &format!("k{number}"), 1024).await?;
    }
    store.kill()?;
    let damaged = damage(store.data_dir())?;
    store.launch()?;
    let status = store.process()?.wait_end(END_WAIT).await?;
    ensure!(!status.success(), "a store with a damaged {} ended with {status}", damaged.display());
    let log = store.process()?.log()?;
    let name = damaged.file_name().context("a file has a name")?.to_string_lossy().into_owned();
    ensure!(log.contains(&name), "the log does not name {name}:\n{log}");
    Ok(())
}

/// Flips one byte amid what was written, in the file with the most of it.
fn damage(folder: &Path) -> Result<PathBuf> {
    let needle = b"k100";
    for path in files(folder)? {
        let mut bytes = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
        if let Some(at) = bytes.windows(needle.len()).position(|window| window == needle) {
            bytes[at + needle.len() + 100] ^= 0x20;
            fs::write(&path, bytes).with_context(|| format!("damage {}", path.display()))?;
            return Ok(path);
        }
    }
    bail!("no file below {} holds what was written", folder.display())
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() { found.extend(files(&path)?) } else { found.push(path) }
    }
    Ok(found)
}

async fn put(client: &Client, key: &str, bytes: usize) -> Result<()> {
    let value = vec![b'x'; bytes].into();
    let request = pb::PutRequest { key: key.to_owned().into(), value, ..Default::default() };
    client.kv().put(request).await?;
    Ok(())
}
