//! The way to the cluster that is meant, and how its refusals are told.

use sharding::{
    admin::{self, Admin},
    kubernetes::{self, Meaning},
};

use crate::{
    cli::sharder::ClusterArgs,
    commands::kube,
    lifecycle,
    report::{Exit, Failure},
};

const INSTALL: &str = "`windlass sharder manifests | kubectl apply -f -` makes them known";

/// Reads credentials; asks nothing yet.
pub(super) async fn admin(arguments: &ClusterArgs) -> Result<Admin, Failure> {
    let cluster = kube::open(&arguments.connect).await?;
    Ok(Admin::new(admin::Options {
        client: cluster.client().map_err(kube::no_cluster)?,
        home: arguments.sharder_namespace.clone(),
        clock: lifecycle::timestamp,
    }))
}

/// What came of a question that has no answer.
pub(super) fn failure(error: admin::Error) -> Failure {
    let (exit, hint) = match &error {
        admin::Error::Kubernetes(error) => of_server(error),
        admin::Error::NotInstalled { .. } => (Exit::No, INSTALL),
        admin::Error::NoRing { .. } => (Exit::No, "`kubectl get rings` lists them"),
        admin::Error::Ring { .. } => (Exit::No, "is this windlass older than the cluster's?"),
        admin::Error::Table { .. } => {
            (Exit::No, "the sharder makes another from the labels once the table is removed")
        }
        admin::Error::NoTable { .. } => {
            (Exit::No, "`windlass sharder status` tells whether a sharder and instances are there")
        }
        admin::Error::Change(_) => (Exit::No, "`windlass sharder status` lists the instances"),
        admin::Error::NoKind { .. } => (Exit::No, "add it to the `resources` of a Ring"),
        admin::Error::Ambiguous { .. } => (Exit::Usage, "write one of them, with its group"),
        admin::Error::NoObject { .. } => (Exit::No, "name its namespace with -n"),
    };
    Failure::new(exit, error).with_hint(hint)
}

fn of_server(error: &kubernetes::Error) -> (Exit, &'static str) {
    match error.meaning() {
        Meaning::Forbidden => {
            (Exit::No, "reading Rings, Leases, Namespaces and the ring's kinds must be allowed")
        }
        Meaning::Gone => (Exit::No, INSTALL),
        Meaning::Unknown | Meaning::Busy => {
            (Exit::Unreachable, "is the API server up? does kubectl reach it?")
        }
        Meaning::Conflict | Meaning::Invalid | Meaning::Expired => (Exit::No, "try again"),
    }
}
