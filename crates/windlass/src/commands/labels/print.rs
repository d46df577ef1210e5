//! Prints answers: as a table for people, as JSON or YAML for programs.

use comfy_table::{Table, presets};
use serde::Serialize;

use crate::{
    cli::labels::{ExportFormat, Output},
    report::{self, Exit, Failure, Outcome},
};

/// Cells begin at the margin, and two blanks part them.
const PADDING: (u16, u16) = (0, 2);

pub(super) fn answer<T: Serialize>(
    answer: &T,
    output: Output,
    table: impl FnOnce(&T) -> String,
) -> Outcome {
    match output {
        Output::Table => report::data(&table(answer)),
        Output::Json => report::data(&json(answer)?),
        Output::Yaml => report::data(yaml(&[answer])?.trim_end()),
    }
}

/// Kubernetes objects: as YAML one document each, as JSON one `List`.
pub(super) fn objects(objects: &[serde_json::Value], format: ExportFormat) -> Outcome {
    match format {
        ExportFormat::Yaml => report::data(yaml(objects)?.trim_end()),
        ExportFormat::Json => {
            let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": objects});
            report::data(&json(&list)?)
        }
    }
}

/// A table without lines, as kubectl prints them.
pub(super) fn table<const COLUMNS: usize>(
    header: [&str; COLUMNS],
    rows: impl IntoIterator<Item = [String; COLUMNS]>,
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header);
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_padding(PADDING);
    }
    table.trim_fmt()
}

fn json<T: Serialize>(answer: &T) -> Result<String, Failure> {
    serde_json::to_string_pretty(answer).map_err(|error| unprintable(error, "JSON"))
}

fn yaml<T: Serialize>(documents: &[T]) -> Result<String, Failure> {
    serde_saphyr::to_string_multiple(documents).map_err(|error| unprintable(error, "YAML"))
}

fn unprintable(error: impl Into<anyhow::Error>, format: &str) -> Failure {
    let error = error.into().context(format!("the answer cannot be written as {format}"));
    Failure::new(Exit::No, error).with_hint("choose another format with -o")
}
