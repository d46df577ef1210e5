//! What can be typed after `windlass run`.

use std::{path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};

use super::{ConnectArgs, parse_pair};
use crate::{
    cli::{Output, duration},
    config::size,
};

const WHAT: &str = "What it sees";
const HOW_MUCH: &str = "What it may use";
const HOW_OFTEN: &str = "When it is stopped or run again";

pub(crate) const ABOUT: &str = "\
Run a command somewhere on the cluster

Prints what the command prints, waits for its end, and ends with its exit code. The command runs in
a container, without a shell, as nobody, with nothing of the environment, and without a network.";

pub(crate) const EXAMPLES: &str = "\
Examples:
  windlass run -- ls -l
  windlass run --memory 64MiB --timeout 10m -- sh -c 'sort big.txt | uniq -c'
  windlass run --detach --retries 3 -- ./nightly       prints the id; see `windlass task`

Exit codes:
  the command's own, or 128 + the signal that ended it
  124  it took longer than --timeout
  125  it was canceled, or failed in another way
  2    the command line is wrong
  with --detach: 0 if it was submitted, else 1, or 3 if no node answers

The first Ctrl-C cancels the task and waits for its end; the second leaves at once.";

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Print what the task writes until it ends; this is the default
    #[arg(short, long, group = "mode")]
    pub(crate) follow: bool,
    /// Wait for the end without printing what the task writes
    #[arg(long, group = "mode")]
    pub(crate) wait: bool,
    /// Print the id of the task and leave
    #[arg(short, long, group = "mode")]
    pub(crate) detach: bool,
    #[command(flatten)]
    pub(crate) spec: SpecArgs,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
    /// How to print the task: of --detach its id, else how it ended, to stderr
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
    /// The command and its arguments; write `--` before it
    #[arg(trailing_var_arg = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<String>,
}

/// What is asked for, but for the command.
#[derive(Debug, Args)]
pub(crate) struct SpecArgs {
    /// A name for people
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// A label to list tasks by; may be repeated
    #[arg(short, long = "label", value_name = "KEY=VALUE", value_parser = parse_pair)]
    pub(crate) labels: Vec<(String, String)>,
    /// From -100 to 100; higher comes first in the queue
    #[arg(long, value_name = "NUMBER", default_value_t = 0, allow_negative_numbers = true)]
    pub(crate) priority: i32,
    /// Submitting the same key again is the same task [default: a fresh one]
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
    /// A variable of its environment; may be repeated
    #[arg(short, long, value_name = "NAME=VALUE", value_parser = parse_pair, help_heading = WHAT)]
    pub(crate) env: Vec<(String, String)>,
    /// Where it starts
    #[arg(short, long, value_name = "PATH", default_value = "/", help_heading = WHAT)]
    pub(crate) workdir: String,
    /// Who it is: numbers of user and group [default: 65534:65534, nobody]
    #[arg(short, long, value_name = "UID[:GID]", help_heading = WHAT)]
    pub(crate) user: Option<String>,
    /// File whose bytes it can read from its standard input, at most 16 KiB; `-` is ours
    #[arg(long, value_name = "FILE", help_heading = WHAT)]
    pub(crate) stdin: Option<PathBuf>,
    /// Name of a root file system that nodes offer [default: the node's own]
    #[arg(long, value_name = "NAME", help_heading = WHAT)]
    pub(crate) rootfs: Option<String>,
    /// `host` where nodes allow it
    #[arg(long, value_enum, value_name = "none|host", default_value = "none", hide_possible_values = true, help_heading = WHAT)]
    pub(crate) network: NetworkArg,
    /// Processors set aside: `0.5`, or `500m`
    #[arg(long, value_name = "NUMBER", default_value = "0.1", value_parser = size::parse_cpus, help_heading = HOW_MUCH)]
    pub(crate) cpus: u64,
    /// Most it gets of them, however idle the node [default: what is idle]
    #[arg(long, value_name = "NUMBER", value_parser = size::parse_cpus, help_heading = HOW_MUCH)]
    pub(crate) cpus_max: Option<u64>,
    /// Memory set aside; who takes more is killed
    #[arg(short, long, value_name = "SIZE", default_value = "256MiB", value_parser = size::parse, help_heading = HOW_MUCH)]
    pub(crate) memory: u64,
    /// Kill it only when it takes more than this [default: --memory]
    #[arg(long, value_name = "SIZE", value_parser = size::parse, help_heading = HOW_MUCH)]
    pub(crate) memory_max: Option<u64>,
    /// Processes and threads
    #[arg(long, value_name = "NUMBER", default_value_t = 256, help_heading = HOW_MUCH)]
    pub(crate) pids: u64,
    /// Files it writes
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = size::parse, help_heading = HOW_MUCH)]
    pub(crate) scratch: u64,
    /// Where these files lie; in memory they count as memory
    #[arg(long, value_enum, value_name = "memory|disk", default_value = "memory", hide_possible_values = true, help_heading = HOW_MUCH)]
    pub(crate) scratch_medium: MediumArg,
    /// Stop it after this, from 1s to 30d [default: never]
    #[arg(short, long, value_name = "DURATION", value_parser = duration::parse, help_heading = HOW_OFTEN)]
    pub(crate) timeout: Option<Duration>,
    /// From TERM to KILL when it is stopped
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::parse, help_heading = HOW_OFTEN)]
    pub(crate) grace: Duration,
    /// Run it again so often if it ends with another code than 0
    #[arg(long, value_name = "NUMBER", default_value_t = 0, help_heading = HOW_OFTEN)]
    pub(crate) retries: u32,
    /// Before the first of these, doubled each time up to 5m
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::parse, help_heading = HOW_OFTEN)]
    pub(crate) backoff: Duration,
    /// Run it again if its node is lost; without this it is started at most once
    #[arg(long, help_heading = HOW_OFTEN)]
    pub(crate) restart_on_cluster_error: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum NetworkArg {
    None,
    Host,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum MediumArg {
    Memory,
    Disk,
}
