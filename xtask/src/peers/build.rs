//! Builds a peer beside its place, checks it, and only then renames it into place.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::go::{GOFLAGS, Toolchain};
use super::recipe::Recipe;
use super::{Peer, step};
use crate::cache::{self, Cache};
use crate::checkout::Checkout;
use crate::process;

pub(super) enum Built {
    At(PathBuf),
    /// The modules cannot be fetched from here; the reason is for the user.
    Unreachable(String),
}

enum Fetched {
    All,
    Unreachable(String),
}

/// What a failed fetch means.
#[derive(Debug, PartialEq, Eq)]
enum FetchFailure {
    /// No answer from where modules come from: another machine may have more luck.
    Unreachable,
    /// What was fetched, or what was asked for, is wrong: it will be wrong everywhere.
    Broken,
}

/// The folder holding the peer's programs, built unless present. The caller holds the build lock.
pub(super) fn ensure(
    checkout: &Checkout,
    cache: &Cache,
    toolchain: &Toolchain,
    peer: &Peer,
) -> Result<Built> {
    let recipe = Recipe::read(&checkout.recipes().join(peer.recipe))?;
    let place = cache.peers().join(peer.name).join(directory_name(peer, &recipe, toolchain));
    if place.exists() {
        eprintln!("{peer}: present in {}", place.display());
        return Ok(Built::At(place));
    }
    let fetched = step(peer, "fetch", || fetch(cache, toolchain, peer, &recipe))?;
    if let Fetched::Unreachable(reason) = fetched {
        return Ok(Built::Unreachable(reason));
    }
    cache::fill_atomically(&place, |beside| compile(cache, toolchain, peer, &recipe, beside))?;
    Ok(Built::At(place))
}

fn directory_name(peer: &Peer, recipe: &Recipe, toolchain: &Toolchain) -> String {
    let mut settings = vec![GOFLAGS, peer.ldflags, &toolchain.version];
    settings.extend(peer.programs.iter().map(|program| program.package));
    format!("{}-{}", peer.version, recipe.fingerprint(&settings))
}

/// Fetches exactly the modules the programs import.
fn fetch(cache: &Cache, toolchain: &Toolchain, peer: &Peer, recipe: &Recipe) -> Result<Fetched> {
    let mut go = toolchain.command(cache);
    go.current_dir(recipe.folder()).args(["list", "-mod=readonly", "-deps"]);
    go.args(peer.programs.iter().map(|program| program.package));
    let finished = process::run_quietly(&mut go)?;
    if finished.is_success {
        return Ok(Fetched::All);
    }
    match judge(&finished.stderr) {
        FetchFailure::Unreachable => Ok(Fetched::Unreachable(complaint(&finished.stderr))),
        FetchFailure::Broken => bail!("{}", finished.last_words()),
    }
}

/// Go has one exit code for everything, so its words decide.
fn judge(stderr: &str) -> FetchFailure {
    const BROKEN: [&str; 2] = ["checksum mismatch", "SECURITY ERROR"];
    const UNREACHABLE: [&str; 4] = ["dial tcp", "Get \"http", "reading http", "proxyconnect"];
    let says = |words: &[&str]| words.iter().any(|word| stderr.contains(word));
    if !says(&BROKEN) && says(&UNREACHABLE) {
        FetchFailure::Unreachable
    } else {
        FetchFailure::Broken
    }
}

/// The first line that is more than progress; one module's failure stands for all.
fn complaint(stderr: &str) -> String {
    let mut lines = stderr.lines().filter(|line| !line.starts_with("go: downloading"));
    lines.next().unwrap_or("go said nothing").to_owned()
}

/// Compiles in the recipe's folder, which `-mod=readonly` keeps as it is, into `folder`.
fn compile(
    cache: &Cache,
    toolchain: &Toolchain,
    peer: &Peer,
    recipe: &Recipe,
    folder: &Path,
) -> Result<()> {
    for program in peer.programs {
        step(peer, &format!("build {}", program.name), || {
            let executable = folder.join(program.name);
            let mut go = toolchain.command(cache);
            go.current_dir(recipe.folder()).args(["build", "-mod=readonly"]);
            go.args(["-ldflags", peer.ldflags, "-o"]).arg(&executable).arg(program.package);
            let finished = process::run_quietly(&mut go)?;
            anyhow::ensure!(finished.is_success, "{}", finished.last_words());
            program.probe.check(&executable)
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_silent_source_excuses_a_failed_fetch() {
        assert_eq!(
            judge("go: a@v1: Get \"https://proxy.example/a\": dial tcp: no such host"),
            FetchFailure::Unreachable
        );
        assert_eq!(
            judge("a@v1: reading https://proxy.example/a: 403 Forbidden"),
            FetchFailure::Unreachable
        );
        assert_eq!(
            judge("verifying a@v1: checksum mismatch\ndownloaded: h1:x\nreading https://p"),
            FetchFailure::Broken
        );
        assert_eq!(judge("missing go.sum entry for module a"), FetchFailure::Broken);
        assert_eq!(judge("go: updates to go.mod needed"), FetchFailure::Broken);
    }

    #[test]
    fn a_skip_needs_one_reason_not_every_line() {
        let stderr = "go: downloading a v1\na@v1: Get \"http://x\": refused\nb@v1: Get: refused";
        assert_eq!(complaint(stderr), "a@v1: Get \"http://x\": refused");
    }
}
