//! One test's world: its runtime, its scratch folder and the programs it needs.
//!
//! A suite whose program is missing is skipped by name and reason; under continuous integration
//! that is a failure, so that nothing passes by being absent.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::assets::{Asset, Missing};
use crate::report::say;

/// What one test has to itself.
#[derive(Debug)]
pub struct Scene {
    name: &'static str,
    /// `None` only while being dropped.
    scratch: Option<TempDir>,
    has_failed: AtomicBool,
}

/// Runs a test that needs programs, and panics if it fails.
///
/// # Panics
///
/// If the test fails, or a program is missing under continuous integration.
pub fn suite(name: &'static str, needs: &[Asset], test: impl AsyncFnOnce(&Scene) -> Result<()>) {
    if let Some(reason) = lack(needs) {
        assert!(!is_set("CI"), "{name}: {reason}");
        return say(&format!("{name}: skipped: {reason}"));
    }
    let scene = Scene::new(name).expect("a scratch folder can be made");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let outcome = runtime.expect("a runtime can be made").block_on(test(&scene));
    if let Err(error) = outcome {
        panic!("{name}: {error:?}");
    }
}

/// Whether the tests are to run at length.
#[must_use]
pub fn is_full() -> bool {
    is_set("WINDLASS_TEST_FULL")
}

/// The first of two bounds by default, the second when tests run at length.
#[must_use]
pub fn bound(default: usize, full: usize) -> usize {
    if is_full() { full } else { default }
}

/// Reports that a part of a suite cannot run here; a failure under continuous integration.
///
/// # Panics
///
/// If `CI` is set.
pub fn skip(name: &str, reason: &str) {
    assert!(!is_set("CI"), "{name}: {reason}");
    say(&format!("{name}: skipped: {reason}"));
}

fn lack(needs: &[Asset]) -> Option<String> {
    needs.iter().find_map(|asset| match asset.find() {
        Ok(Ok(_)) => None,
        Ok(Err(Missing(reason))) => Some(reason),
        Err(error) => panic!("{error:?}"),
    })
}

fn is_set(variable: &str) -> bool {
    env::var(variable).is_ok_and(|value| value == "true" || value == "1")
}

// === impl Scene ===

impl Scene {
    fn new(name: &'static str) -> Result<Self> {
        let scratch = tempfile::Builder::new().prefix(&format!("e2e-{name}-")).tempdir()?;
        Ok(Self { name, scratch: Some(scratch), has_failed: AtomicBool::new(false) })
    }

    /// For a harness that runs several tests in one scene; `Err` says which program is missing.
    ///
    /// # Panics
    ///
    /// If a program is missing under continuous integration.
    pub fn open(name: &'static str, needs: &[Asset]) -> Result<std::result::Result<Self, String>> {
        if let Some(reason) = lack(needs) {
            assert!(!is_set("CI"), "{name}: {reason}");
            return Ok(Err(reason));
        }
        Self::new(name).map(Ok)
    }

    /// Keeps logs and data, though nothing panics.
    pub fn on_failure(&self) {
        self.has_failed.store(true, Ordering::Relaxed);
    }

    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The scratch folder: kept, and its place printed, only if the test fails.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.scratch.as_ref().expect("only dropping takes the folder").path()
    }

    /// A new folder below the scratch folder.
    pub fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.path().join(name);
        fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
        Ok(folder)
    }

    /// A program the suite named among its needs.
    pub fn program(&self, asset: Asset) -> Result<PathBuf> {
        asset.find()?.map_err(|Missing(reason)| anyhow::anyhow!("{reason}"))
    }

    /// Our binary under the name `etcd`, by which it behaves as etcd's does.
    pub fn windlass_as_etcd(&self) -> Result<PathBuf> {
        let link = self.folder("bin")?.join("etcd");
        if !link.exists() {
            symlink(self.program(Asset::Windlass)?, &link).context("name windlass etcd")?;
        }
        Ok(link)
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let is_kept = thread::panicking() || self.has_failed.load(Ordering::Relaxed);
        if let Some(scratch) = self.scratch.take().filter(|_| is_kept) {
            say(&format!("{}: logs and data are kept in {}", self.name, scratch.keep().display()));
        }
    }
}
