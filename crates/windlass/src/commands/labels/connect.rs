//! The way to the cluster that is meant, and how its refusals are told.

use labels::{
    admin::{self, Admin},
    core::policy::Policy,
    kubernetes::Kind,
    options,
};

use super::settings;
use crate::{
    cli::labels::ClusterArgs,
    commands::kube,
    lifecycle,
    report::{Exit, Failure},
};

/// Reads credentials; asks nothing yet.
pub(super) async fn admin(arguments: ClusterArgs, policy: Policy) -> Result<Admin, Failure> {
    let namespaces = settings::namespaces(arguments.stores.clone());
    namespaces.validate().map_err(refused_options)?;
    let cluster = kube::open(&arguments.connect).await?;
    Ok(Admin::new(admin::Options {
        client: cluster.client().map_err(kube::no_cluster)?,
        lease_client: cluster.lease_client().map_err(kube::no_cluster)?,
        namespaces,
        policy,
        identity: kube::identity(),
        clock: lifecycle::timestamp,
    }))
}

pub(super) fn refused_options(error: options::Error) -> Failure {
    Failure::new(Exit::Usage, error).with_hint("`windlass labels run --help` explains every flag")
}

/// What came of a command that did not do what it was asked.
pub(super) fn failure(error: admin::Error) -> Failure {
    let (exit, hint) = match error.kind() {
        None => of_findings(&error),
        // Whoever may write to the stores has nothing to do with reading, which is RBAC's alone.
        Some(Kind::Forbidden) if error.is_of_a_read() => {
            (Exit::No, "`kubectl auth whoami` shows as whom you ask")
        }
        Some(kind) => of_server(&kind),
    };
    Failure::new(exit, error).with_hint(hint)
}

/// The API server answered, and this is what the command found.
fn of_findings(error: &admin::Error) -> (Exit, &'static str) {
    match error {
        admin::Error::NoRecord { .. } => {
            (Exit::No, "`windlass labels list` shows whose labels are stored")
        }
        admin::Error::Unreadable { .. } => {
            (Exit::No, "mend the ConfigMap, or drop it with `windlass labels forget`")
        }
        admin::Error::NoNode { .. } => (Exit::No, "labels can be restored once it is back"),
        admin::Error::Terminating { .. } => (Exit::No, "wait until it is gone and back"),
        admin::Error::NoSnapshot { .. } => {
            (Exit::No, "`windlass labels history NODE` lists what is kept")
        }
        admin::Error::Queued { .. } => (
            Exit::No,
            "wait until they are worked off, as quarantined ones never are, or use --force",
        ),
        admin::Error::Locked { .. } | admin::Error::Contended { .. } => {
            (Exit::No, "somebody else is at it; try again")
        }
        admin::Error::Watched { .. } => (Exit::No, "stop them first"),
        admin::Error::Kubernetes(_) | admin::Error::Lock { .. } | admin::Error::Leases { .. } => {
            (Exit::No, "read again and try again")
        }
    }
}

fn of_server(kind: &Kind) -> (Exit, &'static str) {
    match kind {
        Kind::Unknown => (Exit::Unreachable, "is the API server up? does kubectl reach it?"),
        Kind::Forbidden => (
            Exit::No,
            "only the services and the groups of `manifests --admin-group` write to the stores",
        ),
        Kind::NamespaceMissing => {
            (Exit::No, "`windlass labels manifests | kubectl apply -f -` makes the namespaces")
        }
        _ => (Exit::No, "read again and try again"),
    }
}
