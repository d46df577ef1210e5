//! Disks that fill up, files that were damaged, folders that are taken.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use e2e::client::Client;
use e2e::scene::{Scene, skip, suite};
use e2e::store::{Lane, Store, StoreOptions};
use etcd_api::etcdserverpb as pb;
use tonic::Code;

/// Small enough to be filled in seconds, and several times what the store keeps in reserve.
const DISK_BYTES: usize = 128 * 1024 * 1024;

/// Keys are long, because deletes are allowed on a nearly full disk and write nothing but keys: those
/// of all keys must be more than what the journal has laid out in advance.
const KEY_BYTES: usize = 256 * 1024;

/// More writes than the disk can take.
const WRITES_MAX: usize = 2 * DISK_BYTES / KEY_BYTES;

/// How the rest of the disk is filled, from another program as it were.
const BALLAST_STEP_BYTES: usize = 64 * 1024;

/// What must be left of the disk when the alarm is raised.
const LEFT_BYTES_MIN: usize = 8 * 1024 * 1024;

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

/// The alarm comes before the disk is full. When somebody else fills it all the same, the store stops
/// rather than promise what it cannot keep, and has everything it acknowledged once there is room.
async fn check_full_disk(scene: &Scene, disk: &SmallDisk) -> Result<()> {
    let options = StoreOptions {
        data_dir: Some(disk.place.join("data")),
        ..StoreOptions::new(Lane::Windlass, "store")
    };
    let mut store = Store::start(scene, &options).await?;
    let client = store.client()?;
    let mut kept = fill_until_refused(&client).await?;
    ensure_alarmed(&client).await?;

    let ballast = disk.place.join("ballast");
    let left = fill_up(&ballast)?;
    ensure!(left >= LEFT_BYTES_MIN, "only {left} bytes were left when the alarm was raised");
    let uncertain = delete_until_stopped(&client, &mut kept).await?;
    let status = store.process()?.wait_end(END_WAIT).await?;
    ensure!(status.code() == Some(1), "a store on a full disk ended with {status}");
    let log = store.process()?.log()?;
    for told in ["the store stopped: writes can no longer be made durable", "No space left"] {
        ensure!(log.contains(told), "the log does not say `{told}`:\n{log}");
    }

    fs::remove_file(&ballast).context("make room")?;
    store.kill()?;
    store.restart().await?;
    let mut found = all_keys(&store.client()?).await?;
    ensure_alarmed(&store.client()?).await.context("the alarm stays until it is disarmed")?;
    // Nobody was told whether this one was deleted.
    found.remove(&uncertain);
    kept.remove(&uncertain);
    ensure!(found == kept, "{:?} were kept, {:?} acknowledged", numbers(&found), numbers(&kept));
    Ok(())
}

/// Keys by number, and the revisions they were put at.
type Kept = BTreeMap<usize, i64>;

fn numbers(kept: &Kept) -> Vec<(usize, i64)> {
    kept.iter().map(|(number, revision)| (*number, *revision)).collect()
}

/// Puts until the store says that it has no room, and no other reason.
async fn fill_until_refused(client: &Client) -> Result<Kept> {
    let mut kept = Kept::new();
    for number in 0..WRITES_MAX {
        let value = number.to_string().into();
        let request = pb::PutRequest { key: long_key(number), value, ..Default::default() };
        match client.kv().put(request).await {
            Ok(answer) => {
                let header = answer.into_inner().header.context("every answer has a header")?;
                kept.insert(number, header.revision);
            }
            Err(refused) => {
                ensure!(refused.code() == Code::ResourceExhausted, "{refused}");
                let words = "etcdserver: mvcc: database space exceeded";
                ensure!(refused.message() == words, "{refused}");
                return Ok(kept);
            }
        }
    }
    bail!("the disk never filled")
}

async fn ensure_alarmed(client: &Client) -> Result<()> {
    let request = pb::AlarmRequest::default();
    let alarms = client.maintenance().alarm(request).await?.into_inner().alarms;
    let is_raised = alarms.iter().any(|alarm| alarm.alarm() == pb::AlarmType::Nospace);
    ensure!(is_raised, "no alarm: {alarms:?}");
    Ok(())
}

/// Takes all that is left of the disk; tells how much that was.
fn fill_up(ballast: &Path) -> Result<usize> {
    let mut file = File::create(ballast).context("make the ballast")?;
    let mut filled = 0;
    loop {
        match file.write(&[0; BALLAST_STEP_BYTES]) {
            Ok(written) => filled += written,
            Err(error) if error.kind() == ErrorKind::StorageFull => return Ok(filled),
            Err(error) => return Err(error).context("write the ballast"),
        }
    }
}

/// Deletes one key after the other. Returns the one whose answer never came.
async fn delete_until_stopped(client: &Client, kept: &mut Kept) -> Result<usize> {
    while let Some((&number, _)) = kept.first_key_value() {
        let request = pb::DeleteRangeRequest { key: long_key(number), ..Default::default() };
        if let Err(stopped) = client.kv().delete_range(request).await {
            ensure!(stopped.code() != Code::ResourceExhausted, "a delete was refused: {stopped}");
            return Ok(number);
        }
        kept.remove(&number);
    }
    bail!("every key was deleted on a full disk")
}

async fn all_keys(client: &Client) -> Result<Kept> {
    let request = pb::RangeRequest { key: "k".into(), range_end: "l".into(), ..Default::default() };
    let mut found = Kept::new();
    for kv in client.kv().range(request).await?.into_inner().kvs {
        let number: usize = str::from_utf8(kv.value())?.parse().context("values are numbers")?;
        ensure!(kv.key() == long_key(number), "key {number} has the value of another");
        found.insert(number, kv.mod_revision());
    }
    Ok(found)
}

fn long_key(number: usize) -> Bytes {
    let mut key = format!("k{number:05}-");
    key.push_str(&"x".repeat(KEY_BYTES));
    key.into()
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
