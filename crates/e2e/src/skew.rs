//! Wall clocks that a test can set, each for one process: a library that is loaded before the C
//! library's moves what the process reads. Stepping the machine's would disturb everything else on it,
//! and the kernel's namespaces know of no other wall clock.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::scene::Scene;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/skew/clock.c");

/// A clock of one process, at first as the machine's is.
#[derive(Clone, Debug)]
pub struct Clock {
    file: PathBuf,
    library: PathBuf,
}

// === impl Clock ===

impl Clock {
    pub fn new(scene: &Scene, name: &str) -> Result<Self> {
        let clock =
            Self { file: scene.path().join(format!("clock-{name}")), library: compile(scene)? };
        clock.set(0)?;
        Ok(clock)
    }

    /// What makes a process go by it.
    #[must_use]
    pub fn environment(&self) -> Vec<(String, String)> {
        let text = |path: &PathBuf| path.display().to_string();
        vec![
            ("LD_PRELOAD".to_owned(), text(&self.library)),
            ("E2E_CLOCK".to_owned(), text(&self.file)),
        ]
    }

    /// Seconds before the machine's, or behind it. In place and never shorter: processes have the
    /// file mapped.
    pub fn set(&self, seconds: i64) -> Result<()> {
        let mut file = File::options().create(true).write(true).truncate(false).open(&self.file)?;
        file.write_all(&seconds.to_le_bytes()).context("set a clock")
    }
}

/// With the compiler that links every Rust program here; once in a scene.
fn compile(scene: &Scene) -> Result<PathBuf> {
    let library = scene.path().join("clock.so");
    if !library.exists() {
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).args([SOURCE, "-ldl"]);
        ensure!(cc.status().context("run cc")?.success(), "the clock cannot be compiled");
    }
    Ok(library)
}
