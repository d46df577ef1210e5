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
    serde_saphyr::from_str(&text).map_err(|error| {
        let error = anyhow::Error::new(error).context(format!("{} is no export", path.display()));
        Failure::new(Exit::No, error).with_hint("give what `windlass labels export` printed")
    })
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
