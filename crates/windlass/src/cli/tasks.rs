//! What can be typed to run tasks and to look after them.

mod ca;
mod node;
mod run;

use std::{path::PathBuf, time::Duration};

use clap::{Args, Subcommand};

pub(crate) use ca::{CaCommand, InitArgs, IssueArgs};
pub(crate) use node::{ABOUT as NODE_ABOUT, EXAMPLES as NODE_EXAMPLES, NodeArgs, RuntimeArg};
pub(crate) use run::{
    ABOUT as RUN_ABOUT, EXAMPLES as RUN_EXAMPLES, MediumArg, NetworkArg, RunArgs, SpecArgs,
};

use super::{Output, duration};

/// Where help shows how a node is reached.
const CONNECTION: &str = "Connection";

pub(crate) const TASK_EXIT_CODES: &str = "\
Tasks are named by their id, or by its first 8 characters or more.

Exit codes:
  0  yes, done
  1  no, refused, or it failed; of `wait`: not all tasks ended well
  2  the command line is wrong
  3  no node answers";

/// Which node is asked. Every node answers for all others.
#[derive(Clone, Debug, Args)]
pub(crate) struct ConnectArgs {
    /// Address of any node: HOST:PORT or unix:///PATH [default: the socket of the node on this
    /// machine]
    #[arg(
        short = 'N',
        long = "node",
        value_name = "ADDRESS",
        env = "WINDLASS_ENDPOINT",
        hide_env = true,
        help_heading = CONNECTION
    )]
    pub(crate) address: Option<String>,
    #[command(flatten)]
    pub(crate) identity: IdentityArgs,
}

/// How this side is known to the other, and the other to this.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct IdentityArgs {
    /// PEM file of the authority that signs all certificates of the cluster
    #[arg(long, value_name = "FILE", env = "WINDLASS_CACERT", hide_env = true, help_heading = CONNECTION)]
    pub(crate) cacert: Option<PathBuf>,
    /// PEM file of the certificate to be known by
    #[arg(long, value_name = "FILE", env = "WINDLASS_CERT", hide_env = true, help_heading = CONNECTION)]
    pub(crate) cert: Option<PathBuf>,
    /// PEM file of its key
    #[arg(long, value_name = "FILE", env = "WINDLASS_KEY", hide_env = true, help_heading = CONNECTION)]
    pub(crate) key: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TaskCommand {
    /// List tasks, newest last
    List(ListArgs),
    /// Show one task: what was asked, what became of it, every attempt
    Status(StatusArgs),
    /// Print what a task wrote; of both streams, each to its own
    Logs(LogsArgs),
    /// Wait until tasks have ended; exit code 1 if one did not end well
    Wait(WaitArgs),
    /// Cancel tasks; what runs is stopped
    Cancel(CancelArgs),
    /// Tell for each node why it does not run the task
    Explain(ExplainArgs),
    /// Check that the store holds what it should; exit code 1 if it does not
    Fsck(FsckArgs),
    /// Remove ended tasks now, not after a day
    Gc(GcArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only tasks in this state: queued, running, complete, canceled or failed; may be repeated
    #[arg(long = "status", value_enum, value_name = "STATE", hide_possible_values = true)]
    pub(crate) states: Vec<StateArg>,
    /// Only tasks with this label; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = parse_pair)]
    pub(crate) labels: Vec<(String, String)>,
    /// Only tasks that this node runs or ran last: its name or id
    #[arg(long = "on", value_name = "NODE")]
    pub(crate) on: Option<String>,
    /// At most so many
    #[arg(long, value_name = "NUMBER", default_value_t = 1000)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
    /// How to print the answer
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum StateArg {
    Queued,
    Running,
    Complete,
    Canceled,
    Failed,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// The task
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
    /// How to print the answer
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// The task
    pub(crate) id: String,
    /// Go on until the attempt has ended; may begin while the task is queued
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Which attempt [default: the latest]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) attempt: Option<u32>,
    /// Only the last so many lines
    #[arg(long, value_name = "LINES", conflicts_with = "from")]
    pub(crate) tail: Option<u32>,
    /// Only what lies behind this offset, as `-o json` tells them
    #[arg(long, value_name = "OFFSET")]
    pub(crate) from: Option<u64>,
    /// Only this stream: stdout or stderr
    #[arg(long, value_enum, value_name = "STREAM", hide_possible_values = true)]
    pub(crate) stream: Option<StreamArg>,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
    /// How to print: as it was written, or one JSON object per chunk with the bytes in base64
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum StreamArg {
    Stdout,
    Stderr,
}

#[derive(Debug, Args)]
pub(crate) struct WaitArgs {
    /// The tasks
    #[arg(required = true)]
    pub(crate) ids: Vec<String>,
    /// Give up after this [default: never]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) timeout: Option<Duration>,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
    /// How to print the answer
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// The tasks
    #[arg(required = true)]
    pub(crate) ids: Vec<String>,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
    /// How to print the answer
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The task
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
    /// How to print the answer
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct FsckArgs {
    /// Rewrite status keys from the records, never the reverse
    #[arg(long)]
    pub(crate) repair: bool,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
    /// How to print the answer
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct GcArgs {
    /// Remove what ended longer ago than this
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = duration::parse)]
    pub(crate) older_than: Duration,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
    /// How to print the answer
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

/// `windlass nodes` lists; with a command it acts on one node.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct NodesArgs {
    #[command(subcommand)]
    pub(crate) command: Option<NodesCommand>,
    #[command(flatten)]
    pub(crate) list: NodesListArgs,
}

#[derive(Debug, Args)]
pub(crate) struct NodesListArgs {
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
    /// How to print the answer
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, Subcommand)]
pub(crate) enum NodesCommand {
    /// Let a node finish what it runs, and leave
    Drain(DrainArgs),
}

#[derive(Debug, Args)]
pub(crate) struct DrainArgs {
    /// Name or id of the node
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
    /// How to print the answer
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

/// `KEY=VALUE`; the value may be empty.
pub(super) fn parse_pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write `KEY=VALUE`".to_owned()),
    }
}
