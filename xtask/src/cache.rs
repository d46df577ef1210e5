//! The user's cache folder, where peers and toolchains outlive a checkout.
//!
//! Owns the folder's layout; never writes outside it and never into the checkout.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// `$XDG_CACHE_HOME/windlass`, or `~/.cache/windlass`.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    root: PathBuf,
}

/// Held while peers are built; the operating system lets go of it when the process ends.
#[derive(Debug)]
pub(crate) struct BuildLock {
    _file: File,
}

// === impl Cache ===

impl Cache {
    pub(crate) fn open() -> Result<Self> {
        let root = folder(env::var_os("XDG_CACHE_HOME"), env::var_os("HOME"))
            .context("neither XDG_CACHE_HOME nor HOME names a folder for the cache")?;
        Ok(Self { root })
    }

    #[cfg(test)]
    pub(crate) fn at(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    pub(crate) fn peers(&self) -> PathBuf {
        self.root.join("peers")
    }

    /// Go's module and build caches: shared by all peers, and apart from the user's own.
    pub(crate) fn go(&self) -> PathBuf {
        self.root.join("go")
    }

    /// Cargo's output for peers written in Rust.
    pub(crate) fn cargo_peers(&self) -> PathBuf {
        self.root.join("cargo")
    }

    /// Python packages on their way into a peer.
    pub(crate) fn wheels(&self) -> PathBuf {
        self.root.join("wheels")
    }

    /// Maven's repository: apart from the user's own.
    pub(crate) fn maven(&self) -> PathBuf {
        self.root.join("maven")
    }

    /// Jars on their way into a peer.
    pub(crate) fn jars(&self) -> PathBuf {
        self.root.join("jars")
    }

    /// The nodes that `cargo xtask ignite` runs: their settings, data and logs.
    pub(crate) fn ignite(&self) -> PathBuf {
        self.root.join("ignite")
    }

    pub(crate) fn toolchains(&self) -> PathBuf {
        self.root.join("toolchains")
    }

    /// Where continuous integration keeps cargo's output between clones.
    pub(crate) fn cargo_target(&self) -> PathBuf {
        self.root.join("target")
    }

    /// Waits until no other run builds in this cache.
    pub(crate) fn lock(&self) -> Result<BuildLock> {
        fs::create_dir_all(&self.root)
            .with_context(|| format!("cannot create {}", self.root.display()))?;
        let path = self.root.join("build.lock");
        let file =
            File::create(&path).with_context(|| format!("cannot open {}", path.display()))?;
        if file.try_lock().is_err() {
            eprintln!("waiting for another run, which holds {}", path.display());
            file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
        }
        Ok(BuildLock { _file: file })
    }
}

/// Follows the XDG convention: a relative or empty `XDG_CACHE_HOME` counts as unset.
fn folder(xdg_cache_home: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let named = xdg_cache_home.map(PathBuf::from).filter(|path| path.is_absolute());
    let usual = home.map(PathBuf::from).filter(|path| path.is_absolute());
    Some(named.or_else(|| usual.map(|home| home.join(".cache")))?.join("windlass"))
}

/// Makes `place` hold what `fill` writes, or leaves it absent: no run sees half a folder.
///
/// The caller holds the [`BuildLock`], so leftovers of an interrupted run can be removed.
pub(crate) fn fill_atomically(place: &Path, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let beside = place.with_added_extension("building");
    if beside.exists() {
        fs::remove_dir_all(&beside)
            .with_context(|| format!("cannot remove {}", beside.display()))?;
    }
    fs::create_dir_all(&beside).with_context(|| format!("cannot create {}", beside.display()))?;
    fill(&beside)?;
    fs::rename(&beside, place)
        .with_context(|| format!("cannot rename {} into place", beside.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xdg_wins_over_home_unless_relative() {
        let check = |xdg: Option<&str>, home: Option<&str>| {
            folder(xdg.map(OsString::from), home.map(OsString::from))
        };
        assert_eq!(check(Some("/x"), Some("/h")), Some(PathBuf::from("/x/windlass")));
        assert_eq!(check(Some("x"), Some("/h")), Some(PathBuf::from("/h/.cache/windlass")));
        assert_eq!(check(None, Some("/h")), Some(PathBuf::from("/h/.cache/windlass")));
        assert_eq!(check(None, None), None);
    }

    #[test]
    fn a_failed_fill_leaves_the_place_absent() {
        let scratch = tempfile::tempdir().unwrap();
        let place = scratch.path().join("3.7.1-abc");
        let failed = fill_atomically(&place, |beside| {
            fs::write(beside.join("half"), "")?;
            anyhow::bail!("stopped")
        });
        assert!(failed.is_err());
        assert!(!place.exists());

        fill_atomically(&place, |beside| Ok(fs::write(beside.join("whole"), "")?)).unwrap();
        assert!(place.join("whole").exists());
        assert!(!place.join("half").exists(), "leftovers of the failed run are gone");
    }

    #[test]
    fn the_lock_excludes_a_second_holder() {
        let scratch = tempfile::tempdir().unwrap();
        let cache = Cache::at(scratch.path());
        let held = cache.lock().unwrap();
        let second = File::open(scratch.path().join("build.lock")).unwrap();
        assert!(second.try_lock().is_err());
        drop(held);
        assert!(second.try_lock().is_ok());
    }
}
