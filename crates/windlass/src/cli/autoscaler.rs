//! What can be typed after `windlass autoscaler`.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Subcommand};

use super::{
    kube::{ConnectArgs, DEFAULT_IMAGE, ExportFormat, Output},
    logs::LogArgs,
};

pub(crate) const ABOUT: &str = "\
Make node groups follow the pods

Pending pods bring nodes, idle nodes go, and nodes that are late, broken or leaving are told apart.
A registry explains every node; whatever was asked of the provider is remembered in the cluster, so
a restart neither repeats nor loses it. Takes the flags of Kubernetes' Cluster Autoscaler and any
provider of its external gRPC protocol.";

pub(crate) const EXAMPLES: &str = "\
Try it on a test cluster:
  windlass autoscaler simcloud --scenario cloud.yaml --kubeconfig FILE   a cloud to try it on
  windlass autoscaler run --cloud-config provider.yaml --kubeconfig FILE the loop
  windlass autoscaler status                                             how groups are doing
  windlass autoscaler explain pool-a-7                                   why a node is what it is

Exit codes:
  0  yes, done
  1  no, refused, or it failed; of `replay`: other decisions
  2  the command line or a file is wrong
  3  nobody answers";

pub(crate) const SIMCLOUD_ABOUT: &str = "\
Play a cloud, its kubelets and their faults, for demos and tests

Speaks the external gRPC provider protocol of Kubernetes' Cluster Autoscaler, so any autoscaler
of that protocol can be tried on it. With a kubeconfig it also plays the kubelets of its machines
there: Nodes register, become Ready, run pods and go. No machine is started anywhere, and nothing
is kept.";

pub(crate) const SIMCLOUD_EXAMPLES: &str = "\
A cloud with one group, half of whose new machines never become Ready:
  groups: [{id: pool-a, max: 10, target: 1, boot: 20s..40s}]
  faults: [{fault: never-ready, group: pool-a, one_in: 2}]

Exit codes:
  0  ended by a signal
  1  it failed
  2  the command line or the scenario is wrong";

#[derive(Debug, Subcommand)]
pub(crate) enum AutoscalerCommand {
    /// Make node groups follow the pods; takes the flags of Kubernetes' Cluster Autoscaler
    #[command(disable_help_flag = true)]
    Run {
        /// Flags, with one or two dashes; `--help` explains them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "FLAGS")]
        flags: Vec<String>,
    },
    /// Show cluster and groups, by the autoscaler that runs or, without one, as last published
    Status(StatusArgs),
    /// Tell why a node, a group, an instance or a pending pod is what it is, and what comes next
    Explain(ExplainArgs),
    /// Run recorded iterations again; exit code 1 if they come to other decisions
    Replay {
        /// What `run --record-inputs` has written
        file: PathBuf,
    },
    /// Print the objects that the autoscaler needs in a cluster, for `kubectl apply -f -`
    Manifests(ManifestsArgs),
    #[command(
        about = "Play a cloud, its kubelets and their faults, for demos and tests",
        long_about = SIMCLOUD_ABOUT,
        after_help = SIMCLOUD_EXAMPLES
    )]
    Simcloud(SimcloudArgs),
}

/// Whom to ask.
#[derive(Debug, Args)]
pub(crate) struct ServerArgs {
    /// Address of the autoscaler that runs
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8085")]
    pub(crate) server: String,
    /// Where it keeps its ConfigMaps, which are read if it does not answer
    #[arg(long, value_name = "NAME", default_value = "kube-system")]
    pub(crate) namespace: String,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// How to print the answer
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// A node, a group, an instance, or a pod as `namespace/name`
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ManifestsArgs {
    /// The image whose entry point is `windlass`
    #[arg(long, value_name = "IMAGE", default_value = DEFAULT_IMAGE)]
    pub(crate) image: String,
    /// How many pods; one leads, the others stand by
    #[arg(long, value_name = "NUMBER", default_value_t = 2)]
    pub(crate) replicas: u32,
    /// How to print them
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: ExportFormat,
}

#[derive(Debug, Args)]
pub(crate) struct SimcloudArgs {
    /// File that says what the cloud is and what goes wrong in it, in YAML
    #[arg(long, value_name = "FILE")]
    pub(crate) scenario: PathBuf,
    /// Address of the provider's service; port 0 takes a free one
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:8086")]
    pub(crate) listen: SocketAddr,
    /// Play kubelets in this cluster; without it, in none
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Which of its contexts [default: the current one]
    #[arg(long, value_name = "NAME", help_heading = "Cluster", requires = "kubeconfig")]
    pub(crate) context: Option<String>,
    /// Certificate to show, in PEM; without it, the service is in plain text
    #[arg(long, value_name = "FILE", help_heading = "TLS", requires_all = ["key", "client_ca"])]
    pub(crate) cert: Option<PathBuf>,
    /// Key of the certificate, in PEM
    #[arg(long, value_name = "FILE", help_heading = "TLS", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
    /// Authority whose clients are let in, in PEM
    #[arg(long, value_name = "FILE", help_heading = "TLS", requires = "cert")]
    pub(crate) client_ca: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) logs: LogArgs,
}
