//! Builds a peer beside its place, checks it, and only then renames it into place.
//!
//! Owns the order of the steps and what a failed fetch means. How a kind of recipe is fetched and
//! built is the business of the modules below.

mod cargo;
mod go;
mod maven;
mod python;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::catalogue::Source;
use super::recipe::Recipe;
use super::{Peer, Program, step};
use crate::cache::{self, Cache};
use crate::checkout::Checkout;
use crate::process::Finished;

pub(super) enum Built {
    At(PathBuf),
    /// The tool or what it fetches cannot be had here; the reason is for the user.
    Unavailable(String),
}

/// One way of turning recipes into programs.
trait Builder {
    /// Everything beside the recipe that changes what comes out: flags, packages, versions.
    fn settings(&self, peer: &Peer) -> Vec<String>;

    /// Gets all that comes from elsewhere, so that building needs no network.
    fn fetch(&self, job: &Job<'_>) -> Result<Fetched>;

    /// Puts one program into a folder that is renamed afterwards.
    fn build(&self, job: &Job<'_>, program: &Program, folder: &Path) -> Result<()>;
}

/// What is to be built, and where things are.
struct Job<'a> {
    cache: &'a Cache,
    peer: &'a Peer,
    recipe: &'a Recipe,
}

enum Search {
    Found(Box<dyn Builder>),
    /// Why the tool is missing, in words for the user.
    Missing(String),
}

#[derive(Debug, PartialEq, Eq)]
enum Fetched {
    All,
    /// No answer from where things come from: another machine may have more luck.
    Unreachable(String),
}

/// What a tool says when it cannot fetch. Exit codes tell nothing apart, so words decide.
struct Words {
    /// What was fetched is wrong: it will be wrong everywhere.
    broken: &'static [&'static str],
    unreachable: &'static [&'static str],
}

/// The folder holding the peer's programs, built unless present. The caller holds the build lock.
pub(super) fn ensure(checkout: &Checkout, cache: &Cache, peer: &Peer) -> Result<Built> {
    let builder = match find(cache, &peer.source)? {
        Search::Found(builder) => builder,
        Search::Missing(reason) => return Ok(Built::Unavailable(reason)),
    };
    let recipe = Recipe::read(&checkout.recipes().join(peer.recipe))?;
    let name = format!("{}-{}", peer.version, recipe.fingerprint(&builder.settings(peer)));
    let place = cache.peers().join(peer.name).join(name);
    if place.exists() {
        eprintln!("{peer}: present in {}", place.display());
        return Ok(Built::At(place));
    }
    let job = Job { cache, peer, recipe: &recipe };
    let fetched = step(peer, "fetch", || builder.fetch(&job))?;
    if let Fetched::Unreachable(reason) = fetched {
        return Ok(Built::Unavailable(reason));
    }
    cache::fill_atomically(&place, |beside| build_all(&*builder, &job, beside))?;
    Ok(Built::At(place))
}

fn find(cache: &Cache, source: &Source) -> Result<Search> {
    match source {
        Source::Go { ldflags } => go::find(cache, ldflags),
        Source::Cargo { protoc } => cargo::find(protoc),
        Source::Maven => Ok(maven::find()),
        Source::Python => Ok(python::find()),
    }
}

fn build_all(builder: &dyn Builder, job: &Job<'_>, folder: &Path) -> Result<()> {
    for program in job.peer.programs {
        step(job.peer, &format!("build {}", program.name), || {
            builder.build(job, program, folder)?;
            program.probe.check(&folder.join(program.name))
        })?;
    }
    Ok(())
}

// === impl Words ===

impl Words {
    /// What a finished fetch came to.
    fn judge(&self, finished: &Finished) -> Result<Fetched> {
        if finished.is_success {
            return Ok(Fetched::All);
        }
        let says = |words: &[&str], text: &str| words.iter().any(|word| text.contains(word));
        let mut complaints =
            finished.stderr.lines().filter(|line| says(self.unreachable, line.trim()));
        match complaints.next() {
            // One failure stands for all.
            Some(first) if !says(self.broken, &finished.stderr) => {
                Ok(Fetched::Unreachable(first.trim().to_owned()))
            }
            _ => bail!("{}", finished.last_words()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &Words, stderr: &str) -> Option<Fetched> {
        let stderr = stderr.to_owned();
        words.judge(&Finished { is_success: false, stdout: String::new(), stderr }).ok()
    }

    #[test]
    fn only_a_silent_source_excuses_a_failed_fetch() {
        let unreachable = |line: &str| Some(Fetched::Unreachable(line.to_owned()));
        let silent = "a@v1: Get \"https://proxy.example/a\": dial tcp: no such host";
        let stderr = format!("go: downloading a v1\n{silent}\nb@v1: dial tcp: no such host");
        assert_eq!(check(&go::WORDS, &stderr), unreachable(silent), "one reason, not every line");
        let forbidden = "a@v1: reading https://proxy.example/a: 403 Forbidden";
        assert_eq!(check(&go::WORDS, forbidden), unreachable(forbidden));
        for broken in [
            "verifying a@v1: checksum mismatch\ndownloaded: h1:x\nreading https://p",
            "missing go.sum entry for module a",
            "go: updates to go.mod needed",
        ] {
            assert_eq!(check(&go::WORDS, broken), None, "{broken}");
        }
    }

    #[test]
    fn each_tool_has_its_own_words() {
        let silent = "  Could not resolve host: index.example";
        assert!(check(&cargo::WORDS, silent).is_some());
        assert_eq!(check(&cargo::WORDS, "error: the lock file needs to be updated"), None);
        let silent = "Could not transfer artifact a:b:jar:1 from/to c: Unknown host d";
        assert!(check(&maven::WORDS, silent).is_some());
        assert_eq!(check(&maven::WORDS, "Could not find artifact a:b:jar:1"), None);
        assert!(check(&python::WORDS, "Failed to establish a new connection: refused").is_some());
        let changed = "WARNING: Retrying, Read timed out\nTHESE PACKAGES DO NOT MATCH THE HASHES";
        assert_eq!(check(&python::WORDS, changed), None);
    }
}
