//! Runs every fuzz target for a bounded time, each from its seeds.
//!
//! Owns how the targets are compiled: libFuzzer's coverage counters need no nightly compiler, only
//! flags, and a folder for cargo's output that nothing else shares. Never keeps what a run found
//! interesting, so that every run of a commit begins alike; what made a target fail is kept.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::checkout::Checkout;
use crate::process::{self, Finished};

/// The programs of the crate `fuzz`. What each feeds on lies in `fuzz/seeds` under its name.
const TARGETS: [&str; 7] = [
    "wire",
    "json",
    "transactions",
    "segments",
    "snapshots",
    "label-records",
    "label-transactions",
];

/// Enough to cover all that the seeds lead to.
const TARGET_SECONDS: u32 = 20;
const TARGET_SECONDS_FULL: u32 = 300;

/// An input that takes longer than this has found a loop, or work out of all proportion.
const INPUT_SECONDS_MAX: u32 = 10;
/// No input is large, so whatever needs more than this trusts a length it was told.
const MEMORY_MB_MAX: u32 = 1024;

/// What makes rustc count edges and show comparisons to libFuzzer.
const COUNTERS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 --cfg=fuzzing";

/// Where the targets are compiled, run and what they leave.
struct Workshop {
    /// All of it, apart from cargo's other output: other flags would make it compile anew.
    root: PathBuf,
    /// This machine, as rustc names it.
    host: String,
}

/// libFuzzer is written in C++.
pub(super) fn missing_tool() -> Option<String> {
    let compiler = env::var("CXX").unwrap_or_else(|_unset| "c++".to_owned());
    let found = process::run_quietly(Command::new(&compiler).arg("--version"));
    let is_there = found.is_ok_and(|finished| finished.is_success);
    (!is_there).then(|| format!("no C++ compiler `{compiler}`; install one, or name it in CXX"))
}

/// Runs every target, whatever the others find; true when none found anything.
pub(super) fn run(checkout: &Checkout, is_full: bool) -> Result<bool> {
    let workshop = Workshop { root: checkout.cargo_target().join("fuzz"), host: host()? };
    let is_formatted = process::run_in_front(&mut cargo(checkout, &["fmt"], &["--check"]))?;
    let is_tidy =
        process::run_in_front(workshop.cargo(checkout, "clippy").args(["--", "-Dwarnings"]))?;
    if !process::run_in_front(&mut workshop.cargo(checkout, "build"))? {
        return Ok(false);
    }
    let seconds = if is_full { TARGET_SECONDS_FULL } else { TARGET_SECONDS };
    let mut is_good = is_formatted && is_tidy;
    for target in TARGETS {
        let seeds = checkout.path("fuzz/seeds").join(target);
        is_good &= workshop.run(target, &seeds, seconds)?;
    }
    Ok(is_good)
}

fn cargo(checkout: &Checkout, before: &[&str], after: &[&str]) -> Command {
    let manifest: &[&str] = &["--manifest-path", "fuzz/Cargo.toml"];
    checkout.cargo(&[before, manifest, after].concat())
}

fn host() -> Result<String> {
    let finished = process::run_quietly(Command::new("rustc").args(["--print", "host-tuple"]))?;
    ensure!(finished.is_success, "rustc does not name this machine: {}", finished.last_words());
    Ok(finished.stdout.trim().to_owned())
}

// === impl Workshop ===

impl Workshop {
    /// A command on the targets, compiled with counters. With `--target`, the flags reach neither build scripts nor macros, which have no libFuzzer to
    /// link with.
    fn cargo(&self, checkout: &Checkout, verb: &str) -> Command {
        let mut command =
            cargo(checkout, &[verb], &["--release", "--locked", "--target", &self.host]);
        command.env("RUSTFLAGS", COUNTERS).env("CARGO_TARGET_DIR", &self.root);
        command
    }

    fn run(&self, target: &str, seeds: &Path, seconds: u32) -> Result<bool> {
        let program = self.root.join(&self.host).join("release").join(target);
        let finished = process::run_quietly(
            Command::new(&program)
                .arg(format!("-max_total_time={seconds}"))
                .arg(format!("-timeout={INPUT_SECONDS_MAX}"))
                .arg(format!("-rss_limit_mb={MEMORY_MB_MAX}"))
                .arg(format!(
                    "-artifact_prefix={}/{target}-",
                    self.empty("found", false)?.display()
                ))
                .arg(self.empty(&format!("corpus/{target}"), true)?)
                .arg(seeds),
        )?;
        eprintln!("{}", verdict(&program, target, &finished));
        Ok(finished.is_success)
    }

    /// A folder of the workshop, without what an earlier run left in it if it is to be fresh.
    fn empty(&self, name: &str, is_fresh: bool) -> Result<PathBuf> {
        let folder = self.root.join(name);
        if is_fresh && folder.exists() {
            fs::remove_dir_all(&folder)
                .with_context(|| format!("cannot remove {}", folder.display()))?;
        }
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(folder)
    }
}

/// What a run came to, with the way to see a failure again.
fn verdict(program: &Path, target: &str, finished: &Finished) -> String {
    let line = |start: &str| finished.stderr.lines().find_map(|line| line.strip_prefix(start));
    if finished.is_success {
        return format!("{target}: {}", line("Done ").unwrap_or("done"));
    }
    let found = finished.stderr.lines().find_map(|line| line.split("Test unit written to ").nth(1));
    let replay = match found {
        Some(input) => format!("input  {input}\nreplay {} {input}", program.display()),
        None => "libFuzzer kept no input".to_owned(),
    };
    format!("{}\n{target} failed\n{replay}", finished.last_words())
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(is_success: bool, stderr: &str, expected: Expect) {
        let finished = Finished { is_success, stdout: String::new(), stderr: stderr.to_owned() };
        expected.assert_eq(&verdict(Path::new("/t/wire"), "wire", &finished));
    }

    #[test]
    fn a_quiet_run_tells_how_much_it_tried() {
        check(
            true,
            "INFO: Seed: 1\nDone 4304800 runs in 21 second(s)\n",
            expect!["wire: 4304800 runs in 21 second(s)"],
        );
    }

    #[test]
    fn a_failure_can_be_seen_again() {
        check(
            false,
            "panicked\nartifact_prefix='/t/found/wire-'; Test unit written to /t/found/wire-crash-1\n",
            expect![[r#"
                panicked
                artifact_prefix='/t/found/wire-'; Test unit written to /t/found/wire-crash-1
                wire failed
                input  /t/found/wire-crash-1
                replay /t/wire /t/found/wire-crash-1"#]],
        );
    }

    #[test]
    fn every_target_is_built_and_seeded() {
        let checkout = Checkout::locate();
        let manifest = fs::read_to_string(checkout.path("fuzz/Cargo.toml")).unwrap();
        for target in TARGETS {
            assert!(manifest.contains(&format!("name = \"{target}\"")), "{target}");
            assert!(checkout.path("fuzz/seeds").join(target).is_dir(), "{target}");
        }
        assert_eq!(manifest.matches("[[bin]]").count(), TARGETS.len());
    }
}
