//! Jars from Maven: `pom.xml` names them, and everything they need follows from it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::super::{Peer, Program};
use super::{Builder, Fetched, Job, Search, Words};
use crate::process;

pub(super) const WORDS: Words = Words {
    broken: &["Checksum validation failed"],
    unreachable: &["Could not transfer artifact", "Unknown host", "Network is unreachable"],
};

/// The one plugin that is run, at an exact version: what `mvn` would choose differs by machine.
const COPY: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies";
/// Arguments for `java`, which a recipe has beside its `pom.xml` and a peer beside its jars.
const JAVA_ARGUMENTS: &str = "java.args";

struct Jars;

pub(super) fn find() -> Search {
    let ask = |program: &str, argument: &str| {
        process::run_quietly(Command::new(program).arg(argument))
            .is_ok_and(|finished| finished.is_success)
    };
    match (ask("java", "-version"), ask("mvn", "-version")) {
        (true, true) => Search::Found(Box::new(Jars)),
        _ => Search::Missing("java and mvn are needed".to_owned()),
    }
}

// === impl Jars ===

impl Jars {
    /// Where the jars of a peer wait until all are there.
    fn waiting(job: &Job<'_>) -> PathBuf {
        job.cache.jars().join(job.peer.to_string())
    }
}

impl Builder for Jars {
    fn settings(&self, _peer: &Peer) -> Vec<String> {
        vec![COPY.to_owned()]
    }

    fn fetch(&self, job: &Job<'_>) -> Result<Fetched> {
        let waiting = Self::waiting(job);
        if waiting.exists() {
            fs::remove_dir_all(&waiting)
                .with_context(|| format!("cannot remove {}", waiting.display()))?;
        }
        let option = |name: &str, path: &Path| format!("-D{name}={}", path.display());
        let mut mvn = Command::new("mvn");
        mvn.args(["--batch-mode", "--quiet", "--strict-checksums", "--file"]);
        mvn.arg(job.recipe.folder().join("pom.xml"));
        mvn.arg(option("maven.repo.local", &job.cache.maven()));
        mvn.arg(option("outputDirectory", &waiting)).arg(COPY);
        let mut finished = process::run_quietly(&mut mvn)?;
        // Maven complains on its standard output.
        finished.stderr.push_str(&finished.stdout);
        WORDS.judge(&finished)
    }

    fn build(&self, job: &Job<'_>, program: &Program, folder: &Path) -> Result<()> {
        let place = folder.join(program.name);
        fs::create_dir_all(&place).with_context(|| format!("cannot create {}", place.display()))?;
        let jars = fs::read_dir(Self::waiting(job)).context("list the jars")?;
        let jars: Result<Vec<PathBuf>> =
            jars.map(|jar| Ok(jar.context("list the jars")?.path())).collect();
        for file in jars?.into_iter().chain([job.recipe.folder().join(JAVA_ARGUMENTS)]) {
            let name = file.file_name().context("a listed file has a name")?;
            fs::copy(&file, place.join(name))
                .with_context(|| format!("cannot copy {}", file.display()))?;
        }
        Ok(())
    }
}
