//! What can be typed after `windlass labels`.

mod service;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::kube::{ConnectArgs, DEFAULT_IMAGE, ExportFormat, Output};

pub(crate) use service::{
    MarkerArg, NodeRestrictionArg, PolicyArgs, RestoreModeArg, ServiceArgs, SystemLabelsArg,
};

pub(crate) const ABOUT: &str = "\
Keep Nodes' labels while Nodes come and go

A Node that leaves the cluster and returns under its name gets its last labels back; nothing is
declared beforehand. A watcher queues what happens to Nodes, a processor stores and restores; both
may run in any number of replicas and keep nothing outside Kubernetes.";

pub(crate) const EXAMPLES: &str = "\
Try it on the cluster of your kubeconfig:
  windlass labels manifests | kubectl apply -f -    namespaces, accounts, rights, Deployments
  windlass labels run                               or both services here, in one process
  windlass labels list                              which Nodes' labels are stored
  windlass labels diff worker-7                     what a restore would change

Exit codes:
  0  yes, done
  1  no, refused, or it failed
  2  the command line is wrong
  3  the API server does not answer";

#[derive(Debug, Subcommand)]
pub(crate) enum LabelsCommand {
    /// Watch and process in one process
    Run(ServiceArgs),
    /// Queue what happens to Nodes; start several, they share the work
    Watch(ServiceArgs),
    /// Store and restore what is queued; start several, each works on other Nodes
    Process(ServiceArgs),
    /// List Nodes whose labels are stored or queued
    List(ListArgs),
    /// Show all that is kept of one Node, and what would happen next
    Show(ShowArgs),
    /// Compare a live Node with what a restore would give it; exit code 1 if they differ
    Diff(DiffArgs),
    /// Restore a live Node now, from the record or from an older snapshot
    Restore(RestoreArgs),
    /// Show the snapshots kept of one Node, and what changed between them
    History(HistoryArgs),
    /// Delete the record of one Node, and its checkpoint if it is gone
    Forget(ForgetArgs),
    /// Print all records, to be kept or imported elsewhere
    Export(ExportArgs),
    /// Store the records of an export; Nodes that are live are left as they are
    Import(ImportArgs),
    /// Take our marks off all Nodes, once no watcher runs
    Uninstall(UninstallArgs),
    /// Print the objects the services need in a cluster, for `kubectl apply -f -`
    Manifests(ManifestsArgs),
}

/// Which cluster is meant, and where in it the service keeps what it knows.
#[derive(Clone, Debug, Args)]
pub(crate) struct ClusterArgs {
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
    #[command(flatten)]
    pub(crate) stores: StoresArgs,
}

/// Where the service keeps what it knows.
#[derive(Clone, Debug, Args)]
pub(crate) struct StoresArgs {
    /// Namespace of the queue
    #[arg(
        long,
        value_name = "NAME",
        default_value = "node-metadata-transactions",
        help_heading = "Cluster"
    )]
    pub(crate) transaction_namespace: String,
    /// Namespace of the records
    #[arg(long, value_name = "NAME", default_value = "node-metadata", help_heading = "Cluster")]
    pub(crate) metadata_namespace: String,
    /// Namespace of the checkpoints
    #[arg(
        long,
        value_name = "NAME",
        default_value = "node-metadata-checkpoints",
        help_heading = "Cluster"
    )]
    pub(crate) checkpoint_namespace: String,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// How to print the answer
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Name of the Node, which may be gone
    pub(crate) node: String,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
    /// How to print the answer
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// Name of a live Node
    pub(crate) node: String,
    /// Compare with this older snapshot; `history` lists them
    #[arg(long, value_name = "RV")]
    pub(crate) from: Option<String>,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
    /// How to print the answer
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// Name of a live Node
    pub(crate) node: String,
    /// Restore this older snapshot; `history` lists them
    #[arg(long, value_name = "RV")]
    pub(crate) from: Option<String>,
    /// Show the changes and make none
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
    /// How to print the answer
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// Name of the Node, which may be gone
    pub(crate) node: String,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// How to print the answer
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct ForgetArgs {
    /// Name of the Node
    pub(crate) node: String,
    /// Even while transactions of it are queued
    #[arg(long)]
    pub(crate) force: bool,
    /// Say what would be deleted and delete nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// How to print the answer
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// How to write the records; both can be imported
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: ExportFormat,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// What `export` printed; `-` reads standard input
    pub(crate) file: PathBuf,
    /// Replace records that exist and differ; without it they are kept, with exit code 1
    #[arg(long)]
    pub(crate) replace: bool,
    /// Say what would be stored and store nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// How to print the answer
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct UninstallArgs {
    /// Delete records, queue and checkpoints too; stored labels are lost
    #[arg(long)]
    pub(crate) purge: bool,
    /// Say what would be removed and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// How to print the answer
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct ManifestsArgs {
    /// Image whose entry point is windlass
    #[arg(long, value_name = "IMAGE", default_value = DEFAULT_IMAGE)]
    pub(crate) image: String,
    /// Pods of each service
    #[arg(long, value_name = "NUMBER", default_value_t = 3)]
    pub(crate) replicas: u32,
    /// Group whose members may change the stores by hand; may be repeated
    #[arg(
        long = "admin-group",
        value_name = "GROUP",
        default_values = ["system:masters", "kubeadm:cluster-admins"]
    )]
    pub(crate) admin_groups: Vec<String>,
    /// Namespace of the pods and their accounts
    #[arg(long, value_name = "NAME", default_value = "windlass-labels")]
    pub(crate) namespace: String,
    #[command(flatten)]
    pub(crate) stores: StoresArgs,
    /// How to print the objects
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: ExportFormat,
}
