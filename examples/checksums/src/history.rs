//! What this process did, for whoever checks that no two work on one object: a line of JSON when a
//! reconcile starts, one when it goes on after a wait, and one when no step of it will follow.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use sharding::instance::Shard;

#[derive(Clone)]
pub(crate) struct History {
    file: Arc<Mutex<File>>,
    id: String,
    incarnation: String,
}

/// A reconcile under way.
pub(crate) struct Work {
    history: History,
    uid: String,
    resource_version: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    event: &'a str,
    uid: &'a str,
    resource_version: &'a str,
    id: &'a str,
    incarnation: &'a str,
    /// `CLOCK_MONOTONIC`: the same for all processes of one machine.
    monotonic_ns: i128,
}

// === impl History ===

impl History {
    pub(crate) fn open(path: &Path, shard: &Shard) -> anyhow::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        let file = file.with_context(|| format!("cannot open {}", path.display()))?;
        let (id, incarnation) = (shard.id().to_owned(), shard.incarnation().to_owned());
        Ok(Self { file: Arc::new(Mutex::new(file)), id, incarnation })
    }

    /// Nothing starts that was not told.
    pub(crate) fn begin(&self, secret: &Secret) -> io::Result<Work> {
        let uid = secret.uid().unwrap_or_default();
        let resource_version = secret.resource_version().unwrap_or_default();
        let work = Work { history: self.clone(), uid, resource_version };
        work.tell("start")?;
        Ok(work)
    }
}

// === impl Work ===

impl Work {
    /// It goes on after it has waited.
    pub(crate) fn step(&self) -> io::Result<()> {
        self.tell("step")
    }

    fn tell(&self, event: &str) -> io::Result<()> {
        let now = clock_gettime(ClockId::Monotonic);
        let mut line = serde_json::to_vec(&Line {
            event,
            uid: &self.uid,
            resource_version: &self.resource_version,
            id: &self.history.id,
            incarnation: &self.history.incarnation,
            monotonic_ns: i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec),
        })?;
        line.push(b'\n');
        // One write a line: what other processes append to the same file does not come between.
        self.history.file.lock().write_all(&line)
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if let Err(error) = self.tell("end") {
            let error: &dyn std::error::Error = &error;
            tracing::error!(error, "the history lacks an end");
        }
    }
}
