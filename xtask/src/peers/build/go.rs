//! Go modules: `go.mod` names the programs, `go.sum` pins every byte that is fetched.

use std::path::Path;

use anyhow::{Result, ensure};

use super::super::go::{self, GOFLAGS, Toolchain};
use super::super::{Peer, Program};
use super::{Builder, Fetched, Job, Search, Words};
use crate::cache::Cache;
use crate::process;

pub(super) const WORDS: Words = Words {
    broken: &["checksum mismatch", "SECURITY ERROR"],
    unreachable: &["dial tcp", "Get \"http", "reading http", "proxyconnect"],
};

struct Modules {
    toolchain: Toolchain,
    ldflags: &'static str,
}

pub(super) fn find(cache: &Cache, ldflags: &'static str) -> Result<Search> {
    Ok(match go::find(cache)? {
        go::Search::Found(toolchain) => Search::Found(Box::new(Modules { toolchain, ldflags })),
        go::Search::Missing(reason) => Search::Missing(reason),
    })
}

// === impl Modules ===

impl Builder for Modules {
    fn settings(&self, peer: &Peer) -> Vec<String> {
        let fixed = [GOFLAGS, self.ldflags, &self.toolchain.version];
        let packages = peer.programs.iter().map(|program| program.package);
        fixed.into_iter().chain(packages).map(ToOwned::to_owned).collect()
    }

    /// Exactly the modules the programs import.
    fn fetch(&self, job: &Job<'_>) -> Result<Fetched> {
        let mut go = self.toolchain.command(job.cache);
        go.current_dir(job.recipe.folder()).args(["list", "-mod=readonly", "-deps"]);
        go.args(job.peer.programs.iter().map(|program| program.package));
        WORDS.judge(&process::run_quietly(&mut go)?)
    }

    /// In the recipe's folder, which `-mod=readonly` keeps as it is.
    fn build(&self, job: &Job<'_>, program: &Program, folder: &Path) -> Result<()> {
        let mut go = self.toolchain.command(job.cache);
        go.current_dir(job.recipe.folder()).args(["build", "-mod=readonly", "-ldflags"]);
        go.arg(self.ldflags).arg("-o").arg(folder.join(program.name)).arg(program.package);
        let finished = process::run_quietly(&mut go)?;
        ensure!(finished.is_success, "{}", finished.last_words());
        Ok(())
    }
}
