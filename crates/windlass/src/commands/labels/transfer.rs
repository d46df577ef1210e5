//! `windlass labels export` and `import`.

use std::{
    fs,
    io::{self, Read},
    path::Path,
};

use labels::{
    admin::transfer::{Import, Outcome as Imported, Records},
    core::policy::Policy,
};

use super::{act, connect};
use crate::{
    cli::labels::{ExportArgs, ImportArgs},
    commands::kube::print,
    report::{self, Exit, Failure, Outcome},
};

/// Means standard input.
const STDIN: &str = "-";

/// No byte of a text is more of the parser's events or nodes, or more bytes of what is said.
const PER_BYTE_MAX: usize = 4;

pub(super) async fn export(arguments: ExportArgs) -> Outcome {
    let admin = connect::admin(arguments.cluster, Policy::default()).await?;
    let export = admin.export().await.map_err(connect::failure)?;
    print::answer(&export.records, arguments.output.into(), |_| unreachable!("no table of it"))?;
    let Some((node, why)) = export.unreadable.first() else { return Ok(()) };
    let count = export.unreadable.len();
    let error =
        anyhow::anyhow!("{count} records were left out; the first, of Node `{node}`: {why}");
    Err(Failure::new(Exit::No, error).with_hint("`windlass labels list` names them all"))
}

pub(super) async fn import(arguments: ImportArgs) -> Outcome {
    let records = read(&arguments.file)?;
    let admin = connect::admin(arguments.cluster, Policy::default()).await?;
    let mode = act::mode(arguments.dry_run);
    let imports = admin.import(records, arguments.replace, mode).await.map_err(connect::failure)?;
    print::answer(&imports, arguments.output, |imports| table(imports))?;
    if arguments.dry_run {
        report::words("dry run: nothing was written");
    }
    check_all(&imports)
}

fn read(path: &Path) -> Result<Records, Failure> {
    let text = if path == Path::new(STDIN) {
        io::read_to_string(io::stdin().by_ref())
    } else {
        fs::read_to_string(path)
    };
    let text = text.map_err(|error| {
        let error = anyhow::Error::new(error).context(format!("cannot read {}", path.display()));
        Failure::new(Exit::No, error).with_hint("check the path, and who may read it")
    })?;
    parse(&text).map_err(|error| {
        let error = anyhow::Error::new(error).context(format!("{} is no export", path.display()));
        Failure::new(Exit::No, error).with_hint("give what `windlass labels export` printed")
    })
}

/// The parser takes no more than a configuration has, unless told otherwise: some three thousand
/// records. A text that is in memory bounds itself; what repeats parts of it stays bounded.
fn parse(text: &str) -> Result<Records, serde_saphyr::Error> {
    let (usual, all) = (serde_saphyr::Budget::default(), text.len().saturating_mul(PER_BYTE_MAX));
    let budget = serde_saphyr::budget! {
        max_nodes: usual.max_nodes.max(all),
        max_events: usual.max_events.max(all),
        max_total_scalar_bytes: usual.max_total_scalar_bytes.max(all),
    };
    // Without what stands around the fault: an error is one line.
    let options = serde_saphyr::options! { budget: budget, with_snippet: false };
    serde_saphyr::from_str_with_options(text, options)
}

fn table(imports: &[Import]) -> String {
    let rows = imports.iter().map(|import| {
        let live = if import.is_live { "yes" } else { "no" };
        let problem = import.problem.as_deref().unwrap_or("-");
        [&import.node, import.outcome.as_str(), live, problem].map(ToOwned::to_owned)
    });
    print::table(["NODE", "OUTCOME", "LIVE", "PROBLEM"], rows)
}

fn check_all(imports: &[Import]) -> Outcome {
    let count = |outcome| imports.iter().filter(|import| import.outcome == outcome).count();
    let (kept, refused) = (count(Imported::Kept), count(Imported::Refused));
    if kept + refused == 0 {
        return Ok(());
    }
    let error = anyhow::anyhow!("{kept} records that differ were kept, {refused} refused");
    Err(Failure::new(Exit::No, error).with_hint("--replace replaces those that differ"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record as `export` prints it, with as many labels as a node of a cloud has.
    fn item(number: usize) -> serde_json::Value {
        let labels = (0..20).map(|label| (format!("example.com---SLASH---{label}"), "x".into()));
        let mut data: serde_json::Map<_, _> = labels.collect();
        data.insert("labels_restored".to_owned(), "4122".into());
        data.insert("snapshot.json".to_owned(), r#"{"v":1,"labels":{}}"#.into());
        let annotations = serde_json::json!({
            "labels.windlass.dev/stored-uid": "6f1c0d5e", "labels.windlass.dev/stored-rv": "4122",
        });
        serde_json::json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": data,
            "metadata": {"name": format!("worker-{number}"), "annotations": annotations},
        })
    }

    fn export(items: Vec<serde_json::Value>) -> Records {
        let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": items});
        serde_json::from_value(list).unwrap()
    }

    #[test]
    fn the_export_of_a_large_cluster_can_be_read_again() {
        let records = export((0..5_000).map(item).collect());
        let yaml = serde_saphyr::to_string_multiple(&[&records]).unwrap();
        assert_eq!(parse(&yaml).unwrap(), records);
    }

    #[test]
    fn texts_stay_texts_in_either_format() {
        let mut item = item(1);
        let texts = ["", "~", "null", "true", "no", "7", "1e3", "0x1f", "-", "a: b", "#", "'", "é"];
        for (number, text) in texts.iter().enumerate() {
            item["data"][number.to_string()] = (*text).into();
        }
        let records = export(vec![item]);
        let yaml = serde_saphyr::to_string_multiple(&[&records]).unwrap();
        let json = serde_json::to_string_pretty(&records).unwrap();
        for text in [yaml, json] {
            assert_eq!(parse(&text).unwrap(), records, "{text}");
        }
    }
}
