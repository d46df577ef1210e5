//! Work that keeps a record of its own life. Every command writes where it is into one pipe, with its
//! attempt, its fence and the time since the machine started, and holds a lock that no other attempt of
//! its task can have meanwhile.
//!
//! Containers see nothing of the host that they can write to; a pipe and a lock are none of its files'
//! contents, and both work through a read-only mount.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tasks::wire::{Resources, TaskSpec};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::unix::pipe;
use tokio::task::JoinSet;

use super::check::Sign;

/// Where signs are written to.
const PIPE: &str = "signs";

/// Of commands in half seconds; `BEATS` for the first attempt, `LATER` for all others. The sleeper that
/// is left behind holds the lock too: it must not outlive its attempt.
const LIFE: &str = r#"
say() {
    read -r up idle </proc/uptime
    echo "$1 $WINDLASS_TASK_ID $WINDLASS_ATTEMPT $WINDLASS_FENCE $up" >>"$LEDGER/signs"
}
exec 9<"$LEDGER/$LOCK"
flock -n 9 || { say refused; exit 99; }
say began
setsid sleep 3600 >/dev/null 2>&1 &
beats=$BEATS
[ "$WINDLASS_ATTEMPT" = 1 ] || beats=$LATER
while [ "$beats" -gt 0 ]; do
    sleep 0.5
    say alive
    beats=$((beats - 1))
done
say ended
"#;

/// What a command reads so often that a missing one would be noticed late.
const SEARCH_PATH: &str = "/usr/bin:/bin:/usr/sbin:/sbin";

/// Little enough for a hundred at once on a small machine.
const CPU_MILLIS: u64 = 5;
const MEMORY_BYTES: u64 = 16 << 20;

/// How long the commands of a task live.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// Half seconds, in the first attempt.
    pub beats: u32,
    /// Half seconds, in every other.
    pub later_beats: u32,
    pub restarts: bool,
    /// Set aside for each; the less, the more of them fit on a node.
    pub cpu_millis: u64,
}

/// The pipe, the locks and what was said so far.
#[derive(Debug)]
pub struct Ledger {
    folder: PathBuf,
    signs: Arc<Mutex<Vec<Sign>>>,
    locks: usize,
    _reader: JoinSet<()>,
}

// === impl Work ===

impl Work {
    #[must_use]
    pub fn of(beats: u32) -> Self {
        Self { beats, later_beats: beats, restarts: true, cpu_millis: CPU_MILLIS }
    }

    /// Short, once it was lost the first time.
    #[must_use]
    pub fn then(self, later_beats: u32) -> Self {
        Self { later_beats, ..self }
    }

    #[must_use]
    pub fn once(self) -> Self {
        Self { restarts: false, ..self }
    }

    #[must_use]
    pub fn with_cpu(self, cpu_millis: u64) -> Self {
        Self { cpu_millis, ..self }
    }
}

// === impl Ledger ===

impl Ledger {
    pub fn open(folder: PathBuf) -> Result<Self> {
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).context("open the folder")?;
        let path = folder.join(PIPE);
        mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o666), 0)
            .context("make a pipe")?;
        // The mask of this process does not count.
        fs::set_permissions(&path, Permissions::from_mode(0o666))
            .context("open the pipe to all")?;
        // Opened for writing too, so that it does not end with the last command.
        let receiver = pipe::OpenOptions::new().read_write(true).open_receiver(&path);
        let receiver = receiver.context("open the pipe")?;
        let signs = Arc::new(Mutex::new(Vec::new()));
        let mut reader = JoinSet::new();
        reader.spawn(read(receiver, signs.clone()));
        Ok(Self { folder, signs, locks: 0, _reader: reader })
    }

    /// What nodes must let their tasks see.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A task of its own lock.
    pub fn task(&mut self, work: Work) -> Result<TaskSpec> {
        self.locks += 1;
        let lock = format!("lock-{}", self.locks);
        File::create(self.folder.join(&lock)).context("make a lock")?;
        let env = [
            ("PATH".to_owned(), SEARCH_PATH.to_owned()),
            ("LEDGER".to_owned(), self.folder.display().to_string()),
            ("LOCK".to_owned(), lock),
            ("BEATS".to_owned(), work.beats.to_string()),
            ("LATER".to_owned(), work.later_beats.to_string()),
        ];
        let env = env.into();
        let mut spec = shell(LIFE);
        spec.resources.get_or_insert_default().cpu_millis = Some(work.cpu_millis);
        Ok(TaskSpec { env, restart_on_cluster_error: work.restarts, ..spec })
    }

    #[must_use]
    pub fn signs(&self) -> Vec<Sign> {
        self.signs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A small task that a shell reads.
#[must_use]
pub fn shell(script: &str) -> TaskSpec {
    let resources = Resources {
        cpu_millis: Some(CPU_MILLIS),
        memory_bytes: Some(MEMORY_BYTES),
        pids: Some(16),
        scratch_bytes: Some(1 << 20),
        ..Default::default()
    };
    TaskSpec {
        command: "sh".to_owned(),
        args: vec!["-c".to_owned(), script.to_owned()],
        env: [("PATH".to_owned(), SEARCH_PATH.to_owned())].into(),
        resources: Some(resources),
        grace_ms: Some(1000),
        ..Default::default()
    }
}

async fn read(receiver: pipe::Receiver, signs: Arc<Mutex<Vec<Sign>>>) {
    let mut lines = BufReader::new(receiver).lines();
    // A line that is no sign, or bytes that are no text, would be a command's that we did not write.
    while let Ok(Some(line)) = lines.next_line().await {
        let sign = Sign::parse(&line);
        signs.lock().unwrap_or_else(PoisonError::into_inner).extend(sign);
    }
}
