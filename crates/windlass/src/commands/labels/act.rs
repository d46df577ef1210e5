//! `windlass labels restore`, `forget` and `uninstall`.

use labels::{
    admin::{Mode, forget::Forgotten, uninstall::Uninstalled},
    core::policy::Policy,
};

use super::{connect, look, settings};
use crate::{
    cli::labels::{ForgetArgs, RestoreArgs, UninstallArgs},
    commands::kube::print,
    report::{self, Outcome},
};

pub(super) async fn restore(arguments: RestoreArgs) -> Outcome {
    settings::node(&arguments.node)?;
    let from = settings::version(arguments.from.as_ref())?;
    let policy = settings::policy(arguments.policy)?;
    let admin = connect::admin(arguments.cluster, policy).await?;
    let restored = admin.restore(&arguments.node, from.as_ref(), mode(arguments.dry_run)).await;
    let diff = restored.map_err(connect::failure)?;
    print::answer(&diff, arguments.output, look::diff_table)?;
    told(arguments.dry_run, &format!("restored Node {} from snapshot {}", diff.node, diff.rv));
    Ok(())
}

pub(super) async fn forget(arguments: ForgetArgs) -> Outcome {
    settings::node(&arguments.node)?;
    let admin = connect::admin(arguments.cluster, Policy::default()).await?;
    let forgotten = admin.forget(&arguments.node, arguments.force, mode(arguments.dry_run)).await;
    let forgotten = forgotten.map_err(connect::failure)?;
    print::answer(&forgotten, arguments.output, forgotten_line)?;
    let done = match forgotten.checkpoints {
        0 => "deleted the record",
        _ => "deleted the record and the checkpoint of the Node that is gone",
    };
    told(arguments.dry_run, done);
    Ok(())
}

pub(super) async fn uninstall(arguments: UninstallArgs) -> Outcome {
    let admin = connect::admin(arguments.cluster, Policy::default()).await?;
    let uninstalled = admin.uninstall(arguments.purge, mode(arguments.dry_run)).await;
    let uninstalled = uninstalled.map_err(connect::failure)?;
    print::answer(&uninstalled, arguments.output, uninstalled_lines)?;
    told(
        arguments.dry_run,
        "uninstalled; `windlass labels manifests | kubectl delete --ignore-not-found -f -` removes \
         the rest",
    );
    Ok(())
}

pub(super) fn mode(is_dry_run: bool) -> Mode {
    if is_dry_run { Mode::DryRun } else { Mode::Write }
}

/// Says whether what was printed was done.
fn told(is_dry_run: bool, done: &str) {
    report::words(if is_dry_run { "dry run: nothing was written" } else { done });
}

fn forgotten_line(forgotten: &Forgotten) -> String {
    let labels =
        forgotten.labels.map_or_else(|| "unreadable".to_owned(), |count| count.to_string());
    let Forgotten { node, checkpoints, queued, .. } = forgotten;
    let row = [node.clone(), labels, checkpoints.to_string(), queued.to_string()];
    print::table(["NODE", "LABELS", "CHECKPOINTS", "QUEUED"], [row])
}

fn uninstalled_lines(uninstalled: &Uninstalled) -> String {
    let nodes = [("marks on nodes", uninstalled.nodes.len())].into_iter();
    let purged = uninstalled.purged.iter().flat_map(|purged| {
        [
            ("records", purged.records),
            ("transactions", purged.transactions),
            ("checkpoints", purged.checkpoints),
            ("leases", purged.leases),
        ]
    });
    let rows = nodes.chain(purged).map(|(what, count)| [what.to_owned(), count.to_string()]);
    print::table(["REMOVED", "COUNT"], rows)
}
