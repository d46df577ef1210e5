//! From what was typed to what is asked for. Bounds are the node's to hold.

use std::{
    fs,
    io::{self, Read},
    path::Path,
    time::Duration,
};

use tasks::wire;

use crate::{
    cli::tasks::{MediumArg, NetworkArg, SpecArgs},
    report::{Exit, Failure},
};

/// More than a node takes is not even read.
const STDIN_BYTES_READ_MAX: u64 = (16 << 10) + 1;

pub(super) fn of(typed: SpecArgs, command: Vec<String>) -> Result<wire::TaskSpec, Failure> {
    let stdin = typed.stdin.as_deref().map(read).transpose()?.unwrap_or_default();
    let mut command = command.into_iter();
    Ok(wire::TaskSpec {
        command: command.next().unwrap_or_default(),
        args: command.collect(),
        env: typed.env.into_iter().collect(),
        workdir: typed.workdir,
        user: typed.user.unwrap_or_default(),
        stdin: stdin.into(),
        rootfs: typed.rootfs.unwrap_or_default(),
        network: match typed.network {
            NetworkArg::None => wire::Network::None,
            NetworkArg::Host => wire::Network::Host,
        }
        .into(),
        resources: Some(wire::Resources {
            cpu_millis: Some(typed.cpus),
            memory_bytes: Some(typed.memory),
            pids: Some(typed.pids),
            scratch_bytes: Some(typed.scratch),
            scratch_medium: match typed.scratch_medium {
                MediumArg::Memory => wire::ScratchMedium::Memory,
                MediumArg::Disk => wire::ScratchMedium::Disk,
            }
            .into(),
        }),
        limits: Some(wire::Limits {
            cpu_millis: typed.cpus_max,
            memory_bytes: typed.memory_max,
            ..Default::default()
        }),
        timeout_ms: typed.timeout.map(millis),
        grace_ms: Some(millis(typed.grace)),
        retries: typed.retries,
        backoff_ms: Some(millis(typed.backoff)),
        restart_on_cluster_error: typed.restart_on_cluster_error,
        idempotency_key: typed.idempotency_key.unwrap_or_default(),
        name: typed.name.unwrap_or_default(),
        labels: typed.labels.into_iter().collect(),
        priority: typed.priority,
    })
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        io::stdin().take(STDIN_BYTES_READ_MAX).read_to_end(&mut bytes)
    } else {
        let file = fs::File::open(path);
        file.and_then(|file| file.take(STDIN_BYTES_READ_MAX).read_to_end(&mut bytes))
    };
    read.map_err(|error| {
        let error = anyhow::Error::new(error).context(format!("cannot read {}", path.display()));
        Failure::new(Exit::Usage, error).with_hint("check the path after --stdin")
    })?;
    Ok(bytes)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
