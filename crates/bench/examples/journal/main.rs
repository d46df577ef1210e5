//! The embedded journal beside fjall, each subject and size of commit in a process of its own.
//!
//! ```text
//! cargo run --release -p bench --example journal -- SCRATCH [RECORDS]
//! ```

#![expect(clippy::print_stdout, reason = "an example is a program")]

mod fjall;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{self, Command, Stdio},
};

use anyhow::{Context, Result, bail, ensure};
use bench::journal::{self, Embedded, Figures, Options, Subject};
use serde::de::DeserializeOwned;

use crate::fjall::Fjall;

const SUBJECTS: [&str; 2] = ["embedded", "fjall"];
const COMMITS: [u64; 3] = [1, 10, 100];
const RECORDS: u64 = 200_000;

fn main() -> Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["fill", subject, folder, options] => fill(subject, folder.as_ref(), options),
        ["reopen", subject, folder, options] => reopen(subject, folder.as_ref(), options),
        [scratch] => compare(scratch.as_ref(), RECORDS),
        [scratch, records] => compare(scratch.as_ref(), records.parse()?),
        _ => bail!("name a scratch folder"),
    }
}

fn compare(scratch: &Path, records: u64) -> Result<()> {
    let mut measured = Vec::new();
    for records_per_commit in COMMITS {
        for subject in SUBJECTS {
            // A commit of one costs a sync, so fewer of them say as much.
            let records = if records_per_commit == 1 { records.div_ceil(10) } else { records };
            let options = Options { records, records_per_commit };
            measured.push((subject.to_owned(), run(scratch, subject, options)?));
        }
    }
    println!("{}", journal::table(&measured));
    Ok(())
}

fn run(scratch: &Path, subject: &str, options: Options) -> Result<Figures> {
    let folder = scratch.join(subject);
    let mut figures: Figures = call("fill", subject, &folder, options)?;
    figures.reopen_millis = Some(call("reopen", subject, &folder, options)?);
    fs::remove_dir_all(folder)?;
    Ok(figures)
}

/// Runs one step in a process of its own and reads what it printed.
fn call<T: DeserializeOwned>(
    step: &str,
    subject: &str,
    folder: &PathBuf,
    options: Options,
) -> Result<T> {
    let output = Command::new(env::current_exe()?)
        .args([step, subject])
        .arg(folder)
        .arg(serde_json::to_string(&options)?)
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(output.status.success(), "{step} {subject} failed");
    serde_json::from_slice(&output.stdout).with_context(|| format!("{step} {subject}"))
}

fn fill(subject: &str, folder: &Path, options: &str) -> Result<()> {
    let options = serde_json::from_str(options)?;
    fs::create_dir_all(folder)?;
    let mut subject = open(subject, folder)?;
    let figures = journal::measure(&mut *subject, folder, options)?;
    println!("{}", serde_json::to_string(&figures)?);
    // As a crash does: nothing is closed.
    process::exit(0)
}

fn reopen(subject: &str, folder: &Path, options: &str) -> Result<()> {
    let options = serde_json::from_str(options)?;
    let millis = match subject {
        "embedded" => journal::measure_reopen(|| Embedded::open(folder), options),
        "fjall" => journal::measure_reopen(|| Fjall::open(folder), options),
        other => bail!("`{other}` is no subject"),
    }?;
    println!("{millis}");
    Ok(())
}

fn open(subject: &str, folder: &Path) -> Result<Box<dyn Subject>> {
    Ok(match subject {
        "embedded" => Box::new(Embedded::open(folder)?),
        "fjall" => Box::new(Fjall::open(folder)?),
        other => bail!("`{other}` is no subject"),
    })
}
