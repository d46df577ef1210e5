//! `windlass store inspect` and `windlass store verify` of a folder: what a data folder holds, read offline.

use std::path::Path;

use comfy_table::{Table, presets};
use journal::{
    Error,
    embedded::{self, Report, SegmentReport},
};
use serde_json::{Value, json};

use crate::{
    cli::{FolderArgs, Output},
    commands::up,
    report::{self, Exit, Failure, Outcome},
};

const NAME_DATA_DIR: &str = "name the folder that was given as --data-dir";
const UNSERVABLE: &str = "import or restore again into a new folder; of an unknown entry, use the windlass that wrote it";
const RESTORE: &str =
    "restore a snapshot, or ask for help with the output of `windlass store inspect`";

/// Explains the folder, damage included, and answers whether it is sound.
pub(crate) fn run(arguments: &FolderArgs) -> Outcome {
    check_exists(&arguments.dir)?;
    let dir = up::journal_in(&arguments.dir);
    let report = embedded::inspect(&dir).map_err(failure)?;
    match arguments.output {
        Output::Table => report::data(&table(&report, &dir))?,
        Output::Json => report::data(&json(&report).to_string())?,
    }
    if report.damage.is_empty() {
        return check_is_whole(&report, &dir);
    }
    let error = anyhow::anyhow!("{} is damaged", dir.display());
    Err(Failure::new(Exit::No, error).with_hint(RESTORE))
}

/// Answers whether the folder is sound.
pub(crate) fn run_verify(dir: &Path, output: Output) -> Outcome {
    let dir = up::journal_in(dir);
    let report = embedded::verify(&dir).map_err(failure)?;
    check_is_whole(&report, &dir)?;
    match output {
        Output::Table => {
            let revision = report.state.map_or(0, |state| state.durable.0);
            report::data(&format!("{} is sound up to revision {revision}", dir.display()))
        }
        Output::Json => report::data(&json(&report).to_string()),
    }
}

/// A sound journal may still hold only the first part of an import or a snapshot.
fn check_is_whole(report: &Report, dir: &Path) -> Outcome {
    let entries = report.state.as_ref().map(|state| state.meta.clone()).unwrap_or_default();
    store::check_meta(entries).map_err(|error| {
        let error = anyhow::Error::new(error);
        let error = error.context(format!("{} cannot be served", dir.display()));
        Failure::new(Exit::No, error).with_hint(UNSERVABLE)
    })
}

fn check_exists(dir: &Path) -> Outcome {
    if dir.is_dir() {
        return Ok(());
    }
    let error = anyhow::anyhow!("there is no folder {}", dir.display());
    Err(Failure::new(Exit::No, error).with_hint(NAME_DATA_DIR))
}

fn failure(error: Error) -> Failure {
    let hint = match &error {
        Error::Locked { .. } => "stop the store that uses the folder",
        Error::NewerFormat { .. } => "use the windlass that wrote it, or a newer one",
        Error::Corrupt { .. } | Error::Missing { .. } => RESTORE,
        _ => NAME_DATA_DIR,
    };
    Failure::new(Exit::No, error).with_hint(hint)
}

fn table(report: &Report, dir: &Path) -> String {
    let mut text = format!(
        "{}\nformat {}, identity {}, {} spare and {} left-over files\n",
        dir.display(),
        report.format,
        report.identity,
        report.spares,
        report.leftovers
    );
    if let Some(state) = &report.state {
        text += &format!(
            "revision {}, epoch {}, {} meta entries\n",
            state.durable.0,
            state.epoch.0,
            state.meta.len()
        );
    }
    text += &segments(report);
    for damage in &report.damage {
        text += &format!("\ndamage: {damage}");
    }
    text
}

fn segments(report: &Report) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["SEGMENT", "REVISIONS", "FILE", "WRITTEN", "CHANGES", "NEWEST", "REWRITTEN"]);
    for segment in &report.segments {
        table.add_row([
            format!("{:x}", segment.id),
            revisions(segment),
            segment.file_bytes.to_string(),
            segment.frame_bytes.to_string(),
            segment.changes.to_string(),
            segment.newest_bytes.to_string(),
            segment.is_rewritten.to_string(),
        ]);
    }
    table.trim_fmt()
}

/// The revisions a segment stands for; a new one stands for none.
fn revisions(segment: &SegmentReport) -> String {
    if segment.last == segment.base {
        return "-".to_owned();
    }
    format!("{}..={}", segment.base.0 + 1, segment.last.0)
}

fn json(report: &Report) -> Value {
    let segments: Vec<Value> = report
        .segments
        .iter()
        .map(|segment| {
            json!({
                "path": segment.path,
                "id": segment.id,
                "is_rewritten": segment.is_rewritten,
                "base_revision": segment.base.0,
                "last_revision": segment.last.0,
                "file_bytes": segment.file_bytes,
                "frame_bytes": segment.frame_bytes,
                "changes": segment.changes,
                "change_bytes": segment.change_bytes,
                "newest_bytes": segment.newest_bytes,
            })
        })
        .collect();
    json!({
        "format": report.format,
        "identity": report.identity.to_string(),
        "revision": report.state.as_ref().map(|state| state.durable.0),
        "epoch": report.state.as_ref().map(|state| state.epoch.0),
        "segments": segments,
        "spares": report.spares,
        "leftovers": report.leftovers,
        "damage": report.damage.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}
