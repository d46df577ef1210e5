//! What was asked, checked: every bound is held here, and every refusal names the field. Applies the
//! defaults; knows nothing of nodes.

mod check;
mod error;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use prost::Message;

use super::amounts::Amounts;
use crate::wire;

pub use error::{Problem, SpecError};

pub const ARGS_MAX: usize = 1024;
/// With the byte that ends each string, as the kernel counts.
pub const ARGV_AND_ENV_BYTES_MAX: usize = 32 << 10;
pub const ENV_NAMES_MAX: usize = 256;
pub const STDIN_BYTES_MAX: usize = 16 << 10;
pub const ROOTFS_BYTES_MAX: usize = 63;
pub const NAME_BYTES_MAX: usize = 128;
pub const LABELS_MAX: usize = 32;
pub const LABEL_BYTES_MAX: usize = 63;
pub const RETRIES_MAX: u32 = 100;
pub const PRIORITY_MAX: i32 = 100;
/// Less than this and the container's own init is killed before the command starts.
pub const MEMORY_BYTES_MIN: u64 = 8 << 20;
pub const TIMEOUT_MIN: Duration = Duration::from_secs(1);
pub const TIMEOUT_MAX: Duration = Duration::from_hours(30 * 24);
pub const GRACE_MAX: Duration = Duration::from_mins(10);
pub const BACKOFF_MAX: Duration = Duration::from_mins(5);

const CPU_MILLIS_DEFAULT: u64 = 100;
const MEMORY_BYTES_DEFAULT: u64 = 256 << 20;
const PIDS_DEFAULT: u64 = 256;
const SCRATCH_BYTES_DEFAULT: u64 = 64 << 20;
const GRACE_DEFAULT: Duration = Duration::from_secs(10);
const BACKOFF_DEFAULT: Duration = Duration::from_secs(10);

/// A spec within all bounds, its defaults applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    pub command: String,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub workdir: String,
    pub user: User,
    pub stdin: Bytes,
    /// Empty: the default of the node.
    pub rootfs: String,
    pub network: Network,
    pub resources: Resources,
    pub limits: Limits,
    pub timeout: Option<Duration>,
    pub grace: Duration,
    pub retries: u32,
    /// Before the first retry.
    pub backoff: Duration,
    pub restart_on_cluster_error: bool,
    pub idempotency_key: String,
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub priority: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User {
    pub uid: u32,
    pub gid: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// Only its own loopback.
    None,
    /// The node's, loopback services included.
    Host,
}

/// What is set aside for the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resources {
    pub cpu_millis: u64,
    pub memory_bytes: u64,
    pub pids: u64,
    pub scratch_bytes: u64,
    pub scratch: Scratch,
}

/// Where scratch files lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scratch {
    /// Counts as the task's memory.
    Memory,
    Disk,
}

/// What the task may not exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Not set: CPU time is shared by weight, without a quota.
    pub cpu_millis: Option<u64>,
    pub memory_bytes: u64,
    pub pids: u64,
    pub scratch_bytes: u64,
}

// === impl Spec ===

impl Spec {
    /// Reads a spec as it is kept in a task.
    pub fn decode(encoded: &Bytes) -> Result<Self, SpecError> {
        let message = wire::TaskSpec::decode(encoded.clone());
        Self::new(message.map_err(SpecError::unreadable)?)
    }

    pub fn new(message: wire::TaskSpec) -> Result<Self, SpecError> {
        check::texts(&message)?;
        let resources = Resources::new(message.resources.unwrap_or_default())?;
        let limits = Limits::new(message.limits.unwrap_or_default(), &resources)?;
        Ok(Self {
            workdir: check::workdir(message.workdir)?,
            user: check::user(&message.user)?,
            network: check::network(message.network)?,
            timeout: check::timeout(message.timeout_ms)?,
            grace: check::at_most("grace_ms", message.grace_ms, GRACE_DEFAULT, GRACE_MAX)?,
            backoff: check::at_most(
                "backoff_ms",
                message.backoff_ms,
                BACKOFF_DEFAULT,
                BACKOFF_MAX,
            )?,
            retries: check::retries(message.retries)?,
            priority: check::priority(message.priority)?,
            resources,
            limits,
            command: message.command,
            args: message.args,
            env: message.env,
            stdin: message.stdin,
            rootfs: message.rootfs,
            restart_on_cluster_error: message.restart_on_cluster_error,
            idempotency_key: message.idempotency_key,
            name: message.name,
            labels: message.labels,
        })
    }

    /// What a node must have free to take the task.
    #[must_use]
    pub fn demand(&self) -> Amounts {
        self.resources.demand()
    }
}

// === impl User ===

impl User {
    pub const NOBODY: Self = Self { uid: 65534, gid: 65534 };
}

// === impl Resources ===

impl Resources {
    fn new(message: wire::Resources) -> Result<Self, SpecError> {
        let memory_bytes = message.memory_bytes.unwrap_or(MEMORY_BYTES_DEFAULT);
        check::at_least("resources.memory_bytes", memory_bytes, MEMORY_BYTES_MIN)?;
        let resources = Self {
            cpu_millis: message.cpu_millis.unwrap_or(CPU_MILLIS_DEFAULT),
            memory_bytes,
            pids: message.pids.unwrap_or(PIDS_DEFAULT),
            scratch_bytes: message.scratch_bytes.unwrap_or(SCRATCH_BYTES_DEFAULT),
            scratch: check::scratch(message.scratch_medium)?,
        };
        check::at_least("resources.cpu_millis", resources.cpu_millis, 1)?;
        check::at_least("resources.pids", resources.pids, 1)?;
        check::at_least("resources.scratch_bytes", resources.scratch_bytes, 1)?;
        Ok(resources)
    }

    fn demand(&self) -> Amounts {
        let disk_bytes = match self.scratch {
            Scratch::Memory => 0,
            Scratch::Disk => self.scratch_bytes,
        };
        Amounts {
            cpu_millis: self.cpu_millis,
            memory_bytes: self.memory_bytes,
            pids: self.pids,
            disk_bytes,
        }
    }
}

// === impl Limits ===

impl Limits {
    fn new(message: wire::Limits, resources: &Resources) -> Result<Self, SpecError> {
        let limits = Self {
            cpu_millis: message.cpu_millis,
            memory_bytes: message.memory_bytes.unwrap_or(resources.memory_bytes),
            pids: message.pids.unwrap_or(resources.pids),
            scratch_bytes: message.scratch_bytes.unwrap_or(resources.scratch_bytes),
        };
        let quota = limits.cpu_millis.unwrap_or(resources.cpu_millis);
        check::at_least("limits.cpu_millis", quota, resources.cpu_millis)?;
        check::at_least("limits.memory_bytes", limits.memory_bytes, resources.memory_bytes)?;
        check::at_least("limits.pids", limits.pids, resources.pids)?;
        check::at_least("limits.scratch_bytes", limits.scratch_bytes, resources.scratch_bytes)?;
        Ok(limits)
    }
}
