//! What was typed. `store serve` speaks etcd's flags (`etcd_args`); everything else is clap's.

pub(crate) mod autoscaler;
mod client;
pub(crate) mod duration;
pub(crate) mod etcd_args;
pub(crate) mod etcd_help;
pub(crate) mod kube;
pub(crate) mod labels;
pub(crate) mod logs;
pub(crate) mod sharder;
pub(crate) mod tasks;

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Parser, Subcommand};

pub(crate) use client::{ClientArgs, LoginArgs, Secret, TlsArgs};

const EXIT_CODES: &str = "\
Exit codes:
  0  yes, done
  1  no, or it failed
  2  the command line or the configuration is wrong
  3  nobody answers at the endpoint";

/// Keeps the state of a cluster and runs tasks on it, in one process.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, after_help = EXIT_CODES, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start what one machine can carry, with nothing configured
    Up(UpArgs),
    /// The store: etcd's API over a durable, ordered journal
    #[command(subcommand, arg_required_else_help = true)]
    Store(StoreCommand),
    #[command(
        about = "Run a command somewhere on the cluster",
        long_about = tasks::RUN_ABOUT,
        after_help = tasks::RUN_EXAMPLES
    )]
    Run(Box<tasks::RunArgs>),
    /// Look at tasks and look after them
    #[command(subcommand, arg_required_else_help = true, after_help = tasks::TASK_EXIT_CODES)]
    Task(tasks::TaskCommand),
    /// List the nodes that run tasks; `drain` lets one leave
    Nodes(tasks::NodesArgs),
    #[command(
        about = "Run a task node",
        long_about = tasks::NODE_ABOUT,
        after_help = tasks::NODE_EXAMPLES
    )]
    Node(Box<tasks::NodeArgs>),
    /// Make the certificates of a cluster
    #[command(subcommand, arg_required_else_help = true)]
    Ca(tasks::CaCommand),
    #[command(
        subcommand,
        arg_required_else_help = true,
        about = "Keep Nodes' labels while Nodes come and go",
        long_about = labels::ABOUT,
        after_help = labels::EXAMPLES
    )]
    Labels(labels::LabelsCommand),
    #[command(
        subcommand,
        arg_required_else_help = true,
        about = "Make node groups follow the pods",
        long_about = autoscaler::ABOUT,
        after_help = autoscaler::EXAMPLES
    )]
    Autoscaler(autoscaler::AutoscalerCommand),
    #[command(
        subcommand,
        arg_required_else_help = true,
        about = "Spread the objects of a controller over many instances",
        long_about = sharder::ABOUT,
        after_help = sharder::EXAMPLES
    )]
    Sharder(sharder::SharderCommand),
    /// Measure, beside etcd and beside what the wire and the disk would allow
    #[command(subcommand, arg_required_else_help = true)]
    Bench(BenchCommand),
    /// Print the version
    Version(VersionArgs),
    /// Print the completions for a shell
    Completions { shell: clap_complete::Shell },
}

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Serve etcd's API; takes etcd's flags
    #[command(disable_help_flag = true)]
    Serve {
        /// etcd's flags, with one or two dashes; `--help` explains them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "FLAGS")]
        flags: Vec<String>,
    },
    /// Explain a data folder, while no store uses it
    Inspect(FolderArgs),
    /// Check a snapshot, or a data folder while no store uses it; exit code 1 if it is damaged
    Verify(VerifyArgs),
    /// Show how a running store is doing
    Status(StatusArgs),
    /// Save a running store in one file, and make a data folder of such a file
    #[command(subcommand, arg_required_else_help = true)]
    Snapshot(SnapshotCommand),
    /// Make a data folder of a snapshot; the same as `snapshot restore`
    Restore(RestoreArgs),
    /// Make a data folder of what a running etcd or store holds
    Import(ImportArgs),
    /// Look after a journal on Apache Ignite, which several stores can serve from
    #[command(subcommand, arg_required_else_help = true)]
    Ignite(IgniteCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum IgniteCommand {
    /// Create the journal's tables; what is there is left as it is
    Init {
        #[command(flatten)]
        journal: IgniteUrlArgs,
        /// Copies that Ignite keeps of everything, each on another node
        #[arg(long, value_name = "NUMBER", default_value_t = 3)]
        replicas: u16,
    },
    /// Check that Ignite's settings keep what is acknowledged; exit code 1 if not
    Check(IgniteUrlArgs),
    /// Read everything, and check that the newest values are those of the history; exit code 1 if not
    Verify {
        #[command(flatten)]
        journal: IgniteUrlArgs,
        #[arg(short, long, value_enum, default_value_t)]
        output: Output,
    },
}

#[derive(Debug, Args)]
pub(crate) struct IgniteUrlArgs {
    /// ignite://HOST:PORT[,HOST:PORT…], and perhaps ?rest=HOST:PORT[,…]&schema=NAME&ca=FILE
    #[arg(env = "ETCD_JOURNAL", hide_env_values = true)]
    pub(crate) url: String,
    /// Accept settings that could lose acknowledged writes
    #[arg(long)]
    pub(crate) allow_unsafe: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SnapshotCommand {
    /// Save a running store, which goes on meanwhile
    Save(SaveArgs),
    /// Make a new data folder from a snapshot
    Restore(RestoreArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Measure the store
    Store(BenchStoreArgs),
    /// Measure three stores over one shared journal, which was created before
    Replicas(BenchReplicasArgs),
    /// Measure the labels service on a cluster that has its manifests; makes Nodes called bench-…
    Labels(BenchLabelsArgs),
    /// Measure the task runner: nodes of its own on this machine, containers beside runc's and crun's
    Tasks(BenchTasksArgs),
    /// Measure sharding on a cluster that has the sharder's manifests; makes a namespace and a ring of
    /// its own
    Sharding(BenchShardingArgs),
    /// Measure how long the autoscaler thinks on a large cluster; needs none
    Autoscaler(BenchAutoscalerArgs),
    /// Run an instance that `bench sharding` measures
    #[command(hide = true)]
    ShardInstance(Box<BenchInstanceArgs>),
    /// Serve a ceiling: address, number of objects, and a data folder for the durable one
    #[command(hide = true)]
    Ceiling { arguments: Vec<String> },
}

#[derive(Debug, Args)]
pub(crate) struct BenchStoreArgs {
    /// Measure the store that runs at this address; without it, one is started for every row
    #[arg(long, visible_alias = "endpoints", value_name = "IP:PORT")]
    pub(crate) endpoint: Option<SocketAddr>,
    /// Compare with the etcd that runs at this address
    #[arg(long, value_name = "IP:PORT", conflicts_with = "etcd")]
    pub(crate) against: Option<SocketAddr>,
    /// Compare with this etcd program, started for every row
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) etcd: Option<PathBuf>,
    /// Measure both ceilings too: servers that answer without being a store
    #[arg(long)]
    pub(crate) ceilings: bool,
    /// Only rows of this name, or with this in their name; may be repeated
    #[arg(long = "row", value_name = "NAME")]
    pub(crate) rows: Vec<String>,
    /// How often every row is measured; figures are medians
    #[arg(long, default_value_t = 3)]
    pub(crate) rounds: usize,
    /// Small and short: shows that every row works, but the figures mean little
    #[arg(long)]
    pub(crate) quick: bool,
    /// Where servers keep their data; on the disk that is meant [default: a folder for temporary files]
    #[arg(long, value_name = "DIR")]
    pub(crate) scratch: Option<PathBuf>,
    /// How to print the report
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct BenchReplicasArgs {
    /// Where the journal is, as for `store serve`; better without anything in it
    #[arg(long, value_name = "URL", env = "ETCD_JOURNAL", hide_env_values = true)]
    pub(crate) journal: String,
    /// Accept settings that could lose acknowledged writes
    #[arg(long)]
    pub(crate) allow_unsafe: bool,
    /// A process behind the journal, whose memory and CPU are told; may be repeated
    #[arg(long = "engine-pid", value_name = "PID", value_delimiter = ',')]
    pub(crate) engine_pids: Vec<u32>,
    /// Compare with three members of this etcd program
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) etcd: Option<PathBuf>,
    /// Small and short: shows that everything works, but the figures mean little
    #[arg(long)]
    pub(crate) quick: bool,
    /// Where etcd keeps its data; on the disk that is meant [default: a folder for temporary files]
    #[arg(long, value_name = "DIR")]
    pub(crate) scratch: Option<PathBuf>,
    /// How to print the report
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct BenchLabelsArgs {
    /// File that says how to reach the cluster as somebody who may create and delete Nodes
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: PathBuf,
    /// What watchers log in with [default: the same]
    #[arg(long, value_name = "FILE")]
    pub(crate) watcher_kubeconfig: Option<PathBuf>,
    /// What processors log in with [default: the same]
    #[arg(long, value_name = "FILE")]
    pub(crate) processor_kubeconfig: Option<PathBuf>,
    /// Small and short: shows that everything works, but the figures mean little
    #[arg(long)]
    pub(crate) quick: bool,
    /// How to print the report
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct BenchTasksArgs {
    /// Nodes of the cluster that is measured, from 2
    #[arg(long, value_name = "NUMBER", default_value_t = 3)]
    pub(crate) nodes: usize,
    /// Small and short: shows that everything works, but the figures mean little
    #[arg(long)]
    pub(crate) quick: bool,
    /// Where nodes keep their data; on the disk that is meant [default: a folder for temporary files]
    #[arg(long, value_name = "DIR")]
    pub(crate) scratch: Option<PathBuf>,
    /// How to print the report
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct BenchShardingArgs {
    /// File that says how to reach the cluster as its administrator
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: PathBuf,
    /// Small and short: shows that everything works, but the figures mean little
    #[arg(long)]
    pub(crate) quick: bool,
    /// Where credentials are kept meanwhile [default: a folder for temporary files]
    #[arg(long, value_name = "DIR")]
    pub(crate) scratch: Option<PathBuf>,
    /// How to print the report
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct BenchAutoscalerArgs {
    /// A hundred times smaller: shows that every row works, but the figures mean little
    #[arg(long)]
    pub(crate) quick: bool,
    /// How to print the report
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct BenchInstanceArgs {
    #[arg(long)]
    pub(crate) kubeconfig: PathBuf,
    #[arg(long)]
    pub(crate) namespace: String,
    /// Without one, the controller is alone
    #[arg(long)]
    pub(crate) ring: Option<String>,
    #[arg(long)]
    pub(crate) id: String,
    #[arg(long)]
    pub(crate) lease_seconds: u64,
    #[arg(long)]
    pub(crate) hold: Option<u64>,
    #[arg(long)]
    pub(crate) listen: SocketAddr,
    #[arg(long, value_enum)]
    pub(crate) pace: BenchPace,
}

/// When an instance that is measured has something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum BenchPace {
    Busy,
    OnChange,
    Idle,
}

#[derive(Debug, Args)]
pub(crate) struct UpArgs {
    /// Folder of all data [default: $XDG_DATA_HOME/windlass, else ~/.local/share/windlass]
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Address of the store, on loopback: who reaches the store controls the tasks, so every user of
    /// this machine can have commands run as the user of `up`; port 0 takes a free one
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:2379")]
    pub(crate) listen: SocketAddr,
    /// Socket of the task node [default: node.sock in /run/windlass for root, else in
    /// $XDG_RUNTIME_DIR/windlass]
    #[arg(long, value_name = "PATH", env = "WINDLASS_SOCKET", hide_env = true)]
    pub(crate) socket: Option<PathBuf>,
    /// Keep the labels of this cluster's Nodes, spread the objects of its rings, and explain its
    /// Nodes, too; its API server may start later
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Address of the labels service's health and metrics; port 0 takes a free one
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:9180", requires = "kubeconfig")]
    pub(crate) labels_listen: SocketAddr,
    /// Address of the sharder's health and metrics; port 0 takes a free one
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:9181", requires = "kubeconfig")]
    pub(crate) sharder_listen: SocketAddr,
    /// Address where the autoscaler, which only looks, answers; port 0 takes a free one
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:8085", requires = "kubeconfig")]
    pub(crate) autoscaler_listen: SocketAddr,
}

#[derive(Debug, Args)]
pub(crate) struct FolderArgs {
    /// The folder that was given to the store as --data-dir
    pub(crate) dir: PathBuf,
    /// How to print the answer
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// A snapshot file, or the folder that was given to the store as --data-dir
    pub(crate) path: PathBuf,
    /// How to print the answer
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) client: ClientArgs,
    /// How to print the answer
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct SaveArgs {
    /// The file to write; one that exists is replaced once the new one is whole
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// The snapshot to read
    pub(crate) file: PathBuf,
    /// The folder to make; it must not exist yet, or be empty
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Where the etcd or store serves clients; the first that can be connected to is read
    #[arg(long, value_name = "URL", value_delimiter = ',', required = true)]
    pub(crate) from: Vec<String>,
    /// The folder to make; it must not exist yet, or be empty
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: PathBuf,
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
    #[command(flatten)]
    pub(crate) login: LoginArgs,
}

#[derive(Debug, Args)]
pub(crate) struct VersionArgs {
    /// How to print the answer
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

/// How data is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Output {
    #[default]
    Table,
    Json,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
