//! The way to the cluster that is meant, and how its refusals are told.

use std::{
    env,
    path::{Path, PathBuf},
};

use kubekit::{
    client::{self, Cluster, Repeats},
    metrics::Requests,
};
use labels::{
    admin::{self, Admin},
    core::policy::Policy,
    kubernetes::{self, Kind},
    options,
};
use uuid::Uuid;

use super::settings;
use crate::{
    cli::labels::ClusterArgs,
    lifecycle,
    report::{Exit, Failure},
};

/// Digits of chance in an identity: two commands of one host at once differ.
const IDENTITY_DIGITS: usize = 8;

/// What of a host's name fits beside them into an identity.
const HOST_CHARACTERS_MAX: usize = 40;

/// Reads credentials; asks nothing yet.
pub(super) async fn admin(arguments: ClusterArgs, policy: Policy) -> Result<Admin, Failure> {
    let namespaces = settings::namespaces(arguments.stores.clone());
    namespaces.validate().map_err(refused_options)?;
    // A server that is busy for a moment is asked again; the services judge that themselves.
    let repeats = Repeats::WhenBusy;
    let options = client::Options { repeats, ..client_options(&arguments) };
    let cluster = Cluster::open(options, Requests::default()).await.map_err(no_cluster)?;
    Ok(Admin::new(admin::Options {
        client: cluster.client().map_err(no_cluster)?,
        lease_client: cluster.lease_client().map_err(no_cluster)?,
        namespaces,
        policy,
        identity: identity(),
        clock: lifecycle::timestamp,
    }))
}

pub(super) fn client_options(arguments: &ClusterArgs) -> client::Options {
    client::Options {
        kubeconfig: kubeconfig(arguments.kubeconfig.as_deref()),
        context: arguments.context.clone(),
        ..client::Options::default()
    }
}

/// As kubectl finds it: the flag, the first file of $KUBECONFIG that exists, the one in the home
/// folder. In a pod there is none of these, and the pod's account is taken.
fn kubeconfig(given: Option<&Path>) -> Option<PathBuf> {
    let of_variable = || {
        let paths = env::var_os("KUBECONFIG").filter(|paths| !paths.is_empty())?;
        let paths: Vec<PathBuf> = env::split_paths(&paths).collect();
        paths.iter().find(|path| path.is_file()).or(paths.first()).cloned()
    };
    let of_home = || {
        let path = PathBuf::from(env::var_os("HOME")?).join(".kube/config");
        path.is_file().then_some(path)
    };
    given.map(Path::to_owned).or_else(of_variable).or_else(of_home)
}

/// Names this process to the others: its host, for people, and some digits that nobody else has.
pub(super) fn identity() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().to_lowercase();
    let is_legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let host: String = host.chars().filter(|c| is_legal(*c)).take(HOST_CHARACTERS_MAX).collect();
    let digits = Uuid::new_v4().simple().to_string();
    format!("{}-{}", host.trim_matches('-'), &digits[..IDENTITY_DIGITS])
        .trim_start_matches('-')
        .to_owned()
}

pub(super) fn refused_options(error: options::Error) -> Failure {
    Failure::new(Exit::Usage, error).with_hint("`windlass labels run --help` explains every flag")
}

pub(super) fn no_cluster(error: client::Error) -> Failure {
    let hint = match &error {
        client::Error::NoServiceAccount { .. } => "name a kubeconfig with --kubeconfig",
        client::Error::UseKubeconfig { .. } => {
            "`kubectl config get-contexts` lists the contexts for --context"
        }
        _ => "check --kubeconfig; does kubectl work with the file?",
    };
    Failure::new(Exit::Usage, error).with_hint(hint)
}

/// What came of a command that did not do what it was asked.
pub(super) fn failure(error: admin::Error) -> Failure {
    let (exit, hint) = match &error {
        admin::Error::Kubernetes(error) => of_server(error),
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
        admin::Error::Queued { .. } => (Exit::No, "wait until they are worked off, or use --force"),
        admin::Error::Locked { .. } | admin::Error::Contended { .. } => {
            (Exit::No, "somebody else is at it; try again")
        }
        admin::Error::Lock { .. } | admin::Error::Leases { .. } => {
            (Exit::No, "check the API server, and whether you may write to the stores")
        }
        admin::Error::Watched { .. } => {
            (Exit::No, "stop them first; one that was killed counts for 15 s more")
        }
    };
    Failure::new(exit, error).with_hint(hint)
}

fn of_server(error: &kubernetes::Error) -> (Exit, &'static str) {
    match error.kind {
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
