//! Prints answers: as a table for people, as JSON or YAML for programs.

use serde::Serialize;

use crate::{
    cli::kube::{ExportFormat, Output},
    report::{self, Failure, Outcome, json, unprintable},
};

pub(crate) use crate::report::table;

pub(crate) fn answer<T: Serialize>(
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
pub(crate) fn objects(objects: &[serde_json::Value], format: ExportFormat) -> Outcome {
    match format {
        ExportFormat::Yaml => report::data(yaml(objects)?.trim_end()),
        ExportFormat::Json => {
            let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": objects});
            report::data(&json(&list)?)
        }
    }
}

fn yaml<T: Serialize>(documents: &[T]) -> Result<String, Failure> {
    serde_saphyr::to_string_multiple(documents).map_err(|error| unprintable(error, "YAML"))
}
