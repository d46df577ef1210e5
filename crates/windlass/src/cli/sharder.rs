//! What can be typed after `windlass sharder`.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Subcommand};

use super::{
    kube::{ConnectArgs, DEFAULT_IMAGE, ExportFormat, Output},
    logs::LogArgs,
};

pub(crate) const ABOUT: &str = "\
Spread the objects of a controller over many instances

A Ring names the kinds of objects that a controller works on. The sharder gives each object to one
of the instances that keep a Lease, by a label; an instance watches only what carries its own id.
An object changes hands after its instance gave it up or is known to be gone: no two work on it.";

pub(crate) const EXAMPLES: &str = "\
Try it on the cluster of your kubeconfig:
  windlass sharder manifests | kubectl apply -f -              the kind Ring, rights, a Deployment
  kubectl apply -f ring.yaml                                   which objects are spread
  windlass sharder manifests -f ring.yaml | kubectl apply -f - what that ring needs
  windlass sharder status                                      who has how much
  windlass sharder explain site/home -n shop                   why an object is where it is
  windlass sharder simulate websites --join site-3             what one more would move

Exit codes:
  0  yes, done
  1  no, refused, or it failed
  2  the command line is wrong
  3  the API server does not answer";

#[derive(Debug, Subcommand)]
pub(crate) enum SharderCommand {
    /// Give objects to instances; start several, one leads and the others stand by
    Run(RunArgs),
    /// Print the objects that the sharder, or one ring, needs in a cluster, for `kubectl apply -f -`
    Manifests(ManifestsArgs),
    /// Show rings: their instances, how evenly objects are spread, what is on its way
    Status(StatusArgs),
    /// Tell why an object is where it is, and what it waits for
    Explain(ExplainArgs),
    /// Show what would move if instances joined, left or had another weight; changes nothing
    Simulate(SimulateArgs),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// Requests to the API server at once
    #[arg(long, value_name = "NUMBER", default_value_t = 128)]
    pub(crate) max_inflight: usize,
    /// Address of /livez, /readyz and /metrics; port 0 takes a free one
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:9181")]
    pub(crate) listen: SocketAddr,
    #[command(flatten)]
    pub(crate) logs: LogArgs,
}

/// Which cluster is meant, and where in it the sharder lives.
#[derive(Clone, Debug, Args)]
pub(crate) struct ClusterArgs {
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
    /// Namespace of the sharder; its objects are spread only by rings that select it
    #[arg(
        long,
        value_name = "NAME",
        default_value = sharding::manifests::HOME,
        help_heading = "Cluster"
    )]
    pub(crate) sharder_namespace: String,
}

#[derive(Debug, Args)]
pub(crate) struct ManifestsArgs {
    /// Print what this Ring of the cluster needs: rights of sharder and instances, and the fence if
    /// it is External. Without it, what the sharder itself needs
    #[arg(conflicts_with = "file")]
    pub(crate) ring: Option<String>,
    /// The same for a Ring in a file, which may not be in the cluster yet; `-` reads standard input
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Image whose entry point is windlass
    #[arg(long, value_name = "IMAGE", default_value = DEFAULT_IMAGE)]
    pub(crate) image: String,
    /// Pods, of which one leads
    #[arg(long, value_name = "NUMBER", default_value_t = 2)]
    pub(crate) replicas: u32,
    /// How to print the objects
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: ExportFormat,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Only this Ring
    pub(crate) ring: Option<String>,
    /// How to print the answer
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The object, such as `site/home`, `sites.example.com/home` or `ConfigMap/home`
    #[arg(value_name = "KIND/NAME")]
    pub(crate) object: String,
    /// Namespace of the object
    #[arg(short, long = "namespace", value_name = "NAME", default_value = "default")]
    pub(crate) namespace: String,
    /// How to print the answer
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    /// The Ring
    pub(crate) ring: String,
    /// An instance that joins, and its weight if that is not 100; may be repeated
    #[arg(long = "join", value_name = "ID[:WEIGHT]")]
    pub(crate) joins: Vec<String>,
    /// An instance that leaves; may be repeated
    #[arg(long = "leave", value_name = "ID")]
    pub(crate) leaves: Vec<String>,
    /// An instance that gets another weight, from 0 to 1000; may be repeated
    #[arg(long = "weight", value_name = "ID=NUMBER")]
    pub(crate) weights: Vec<String>,
    /// How to print the answer
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
}
