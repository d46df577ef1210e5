//! Python packages in an environment of their own; `requirements.txt` pins them by their hashes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::super::{Peer, Program};
use super::{Builder, Fetched, Job, Search, Words};
use crate::process;

pub(super) const WORDS: Words = Words {
    broken: &["DO NOT MATCH THE HASHES"],
    unreachable: &["Failed to establish a new connection", "Read timed out", "Max retries"],
};

struct Packages {
    /// As reported, for instance `Python 3.11.7`.
    interpreter: String,
}

pub(super) fn find() -> Search {
    let ask = |arguments: &[&str]| match process::run_quietly(python().args(arguments)) {
        Ok(finished) if finished.is_success => Ok(finished.stdout.trim().to_owned()),
        Ok(finished) => Err(finished.last_words()),
        Err(error) => Err(format!("{error:#}")),
    };
    let asked = ask(&["-c", "import pip, venv"]).and_then(|_nothing| ask(&["--version"]));
    match asked {
        Ok(interpreter) => Search::Found(Box::new(Packages { interpreter })),
        Err(reason) => Search::Missing(format!("python3 with pip and venv is needed: {reason}")),
    }
}

fn python() -> Command {
    Command::new("python3")
}

// === impl Packages ===

impl Packages {
    /// Where the wheels of a peer wait to be installed.
    fn wheels(job: &Job<'_>) -> PathBuf {
        job.cache.wheels().join(job.peer.to_string())
    }
}

impl Builder for Packages {
    fn settings(&self, _peer: &Peer) -> Vec<String> {
        vec![self.interpreter.clone()]
    }

    /// What has no wheel is made into one, which may fetch what that takes.
    fn fetch(&self, job: &Job<'_>) -> Result<Fetched> {
        let wheels = Self::wheels(job);
        if wheels.exists() {
            fs::remove_dir_all(&wheels)
                .with_context(|| format!("cannot remove {}", wheels.display()))?;
        }
        let mut pip = python();
        pip.args(["-m", "pip", "wheel", "--quiet", "--require-hashes", "--wheel-dir"]).arg(wheels);
        pip.arg("--requirement").arg(job.recipe.folder().join("requirements.txt"));
        WORDS.judge(&process::run_quietly(&mut pip)?)
    }

    fn build(&self, job: &Job<'_>, _program: &Program, folder: &Path) -> Result<()> {
        let mut venv = python();
        venv.args(["-m", "venv", "--without-pip"]).arg(folder);
        let finished = process::run_quietly(&mut venv)?;
        ensure!(finished.is_success, "{}", finished.last_words());
        let mut pip = python();
        pip.args(["-m", "pip", "--python"]).arg(folder.join("bin/python3"));
        pip.args(["install", "--quiet", "--no-index", "--no-deps"]);
        for wheel in fs::read_dir(Self::wheels(job)).context("list the wheels")? {
            pip.arg(wheel.context("list the wheels")?.path());
        }
        let finished = process::run_quietly(&mut pip)?;
        ensure!(finished.is_success, "{}", finished.last_words());
        Ok(())
    }
}
