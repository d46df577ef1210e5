//! A cargo workspace of its own, pinned by its `Cargo.lock`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::super::{Peer, Program};
use super::{Builder, Fetched, Job, Search, Words};
use crate::process;

pub(super) const WORDS: Words = Words {
    broken: &["checksum", "lock file"],
    unreachable: &["Could not resolve host", "Couldn't connect", "download of", "network failure"],
};

struct Workspace {
    /// The package that compiles protobuf files for build scripts.
    protoc: &'static str,
    /// As reported, for instance `rustc 1.95.0`.
    compiler: String,
}

/// The tool itself was built with cargo, so there is one.
pub(super) fn find(protoc: &'static str) -> Result<Search> {
    let finished = process::run_quietly(Command::new("rustc").arg("--version"))?;
    ensure!(finished.is_success, "rustc does not tell its version: {}", finished.last_words());
    let compiler = finished.stdout.trim().to_owned();
    Ok(Search::Found(Box::new(Workspace { protoc, compiler })))
}

// === impl Workspace ===

impl Workspace {
    fn cargo(job: &Job<'_>, arguments: &[&str]) -> Command {
        let mut cargo = Command::new("cargo");
        cargo.current_dir(job.recipe.folder()).args(arguments).arg("--locked");
        // Flags for our own sources are not meant for others'.
        cargo.env("CARGO_TARGET_DIR", job.cache.cargo_peers()).env_remove("RUSTFLAGS");
        cargo
    }

    /// Compiles one package and returns its executable.
    fn compile(job: &Job<'_>, package: &str, protoc: Option<&Path>) -> Result<PathBuf> {
        let mut cargo =
            Self::cargo(job, &["build", "--release", "--offline", "--package", package]);
        if let Some(protoc) = protoc {
            cargo.env("PROTOC", protoc);
        }
        let finished = process::run_quietly(&mut cargo)?;
        ensure!(finished.is_success, "{}", finished.last_words());
        Ok(job.cache.cargo_peers().join("release").join(package))
    }
}

impl Builder for Workspace {
    fn settings(&self, peer: &Peer) -> Vec<String> {
        let packages = peer.programs.iter().map(|program| program.package);
        [self.protoc, &self.compiler].into_iter().chain(packages).map(ToOwned::to_owned).collect()
    }

    fn fetch(&self, job: &Job<'_>) -> Result<Fetched> {
        WORDS.judge(&process::run_quietly(&mut Self::cargo(job, &["fetch"]))?)
    }

    fn build(&self, job: &Job<'_>, program: &Program, folder: &Path) -> Result<()> {
        let protoc = Self::compile(job, self.protoc, None)?;
        let executable = Self::compile(job, program.package, Some(&protoc))?;
        fs::copy(&executable, folder.join(program.name))
            .with_context(|| format!("cannot copy {}", executable.display()))?;
        Ok(())
    }
}
