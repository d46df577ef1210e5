//! What can be typed after `windlass node`. Each flag is also a variable, `WINDLASS_` and its name, and
//! a key of the configuration file; a flag beats its variable, a variable the file.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, ValueEnum, builder::FalseyValueParser};
use serde::Deserialize;

use super::IdentityArgs;
use crate::{
    cli::{
        duration,
        logs::{LogFormat, LogLevel},
    },
    config::size,
};

const REACHED: &str = "How it is reached";
const RUNS: &str = "How it runs tasks";
const BOUNDS: &str = "Bounds";
const LOGS: &str = "Logs";

pub(crate) const ABOUT: &str = "\
Run a task node

Every node accepts, takes and runs tasks, and answers for all others. Its state lies in a store: one
that it serves itself from its data folder, or any windlass or etcd given with --store; nodes with
the same store are one cluster.";

pub(crate) const EXAMPLES: &str = "\
Two nodes on one machine:
  windlass node --name node1 --listen 127.0.0.1:8080 --store-listen 127.0.0.1:2379 --data-dir n1 --insecure
  windlass node --name node2 --listen 127.0.0.2:8080 --store http://127.0.0.1:2379 --data-dir n2 --insecure
  windlass run -N 127.0.0.2:8080 ls -- -l

Every flag is also a variable (--data-dir is WINDLASS_DATA_DIR) and a key of the file after --config
(data-dir = \"n1\"). A flag beats its variable, a variable the file.";

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct NodeArgs {
    /// TOML file with these names; unknown ones are errors
    #[arg(long, value_name = "FILE", env = "WINDLASS_CONFIG", hide_env = true)]
    pub(crate) config: Option<PathBuf>,
    /// Name of the node, for people [default: the name of the machine]
    #[arg(long, value_name = "NAME", env = "WINDLASS_NAME", hide_env = true)]
    pub(crate) name: Option<String>,
    /// Folder of all data [default: /var/lib/windlass for root, else as for `windlass up`]
    #[arg(long, value_name = "DIR", env = "WINDLASS_DATA_DIR", hide_env = true)]
    pub(crate) data_dir: Option<PathBuf>,
    /// Address of the API; port 0 takes a free one [default: none, only the socket]
    #[arg(long, value_name = "IP:PORT", env = "WINDLASS_LISTEN", hide_env = true, help_heading = REACHED)]
    pub(crate) listen: Option<SocketAddr>,
    /// Where other nodes reach the API [default: --listen]
    #[arg(long, value_name = "HOST:PORT", env = "WINDLASS_ADVERTISE", hide_env = true, help_heading = REACHED)]
    pub(crate) advertise: Option<String>,
    /// Socket of the API [default: without --listen, node.sock in /run/windlass for root, else in
    /// $XDG_RUNTIME_DIR/windlass]
    #[arg(long, value_name = "PATH", env = "WINDLASS_SOCKET", hide_env = true, help_heading = REACHED)]
    pub(crate) socket: Option<PathBuf>,
    /// Endpoints of a windlass or etcd, with commas between them; on another machine with certificates
    /// alone; without a scheme, https:// if there are any [default: one of its own]
    #[arg(
        long,
        value_name = "URLS",
        value_delimiter = ',',
        env = "WINDLASS_STORE",
        hide_env = true,
        conflicts_with = "store_listen",
        help_heading = REACHED
    )]
    pub(crate) store: Vec<String>,
    /// Address of its own store, for other nodes; port 0 takes a free one [default: none]
    #[arg(long, value_name = "IP:PORT", env = "WINDLASS_STORE_LISTEN", hide_env = true, help_heading = REACHED)]
    pub(crate) store_listen: Option<SocketAddr>,
    /// Serve addresses of this machine alone (127.0.0.0/8, ::1) without certificates
    #[arg(long, value_parser = FalseyValueParser::new(), env = "WINDLASS_INSECURE", hide_env = true, help_heading = REACHED)]
    pub(crate) insecure: bool,
    #[command(flatten)]
    pub(crate) identity: IdentityArgs,
    /// native: containers, as root; process: plain processes, no limits are enforced; auto: native
    /// as root, else process if only this machine is served
    #[arg(
        long,
        value_enum,
        value_name = "RUNTIME",
        env = "WINDLASS_RUNTIME",
        hide_env = true,
        hide_possible_values = true,
        help_heading = RUNS
    )]
    pub(crate) runtime: Option<RuntimeArg>,
    /// Folder that tasks can have as their root, by its name; without one it is `default`; may be
    /// repeated [default: the programs of this machine, read-only]
    #[arg(
        long,
        value_name = "[NAME=]DIR",
        value_delimiter = ',',
        env = "WINDLASS_ROOTFS",
        hide_env = true,
        help_heading = RUNS
    )]
    pub(crate) rootfs: Vec<String>,
    /// Folders of this machine that tasks without a rootfs see, with commas between them [default:
    /// /usr, /etc, /bin, /sbin, /lib*, /nix/store]
    #[arg(
        long,
        value_name = "PATHS",
        value_delimiter = ',',
        env = "WINDLASS_HOST_VIEW",
        hide_env = true,
        help_heading = RUNS
    )]
    pub(crate) host_view: Vec<PathBuf>,
    /// Let tasks use the network of this machine
    #[arg(long, value_parser = FalseyValueParser::new(), env = "WINDLASS_ALLOW_NET_HOST", hide_env = true, help_heading = RUNS)]
    pub(crate) allow_net_host: bool,
    /// Let tasks without a rootfs be root
    #[arg(long, value_parser = FalseyValueParser::new(), env = "WINDLASS_ALLOW_HOST_ROOT", hide_env = true, help_heading = RUNS)]
    pub(crate) allow_host_root: bool,
    /// From 5s to 5m: how long others wait for a node that is silent before they take its tasks; a
    /// store away for two thirds of this stops all tasks [default: 10s]
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = duration::parse,
        env = "WINDLASS_LEASE_TTL",
        hide_env = true,
        help_heading = RUNS
    )]
    pub(crate) lease_ttl: Option<Duration>,
    /// Tasks in the queue of the whole cluster [default: 100000]
    #[arg(long, value_name = "NUMBER", env = "WINDLASS_MAX_QUEUED", hide_env = true, help_heading = BOUNDS)]
    pub(crate) max_queued: Option<usize>,
    /// Size of one message [default: 4MiB]
    #[arg(
        long,
        value_name = "SIZE",
        value_parser = size::parse,
        env = "WINDLASS_MAX_MESSAGE",
        hide_env = true,
        help_heading = BOUNDS
    )]
    pub(crate) max_message: Option<u64>,
    /// Clients that wait for tasks at once [default: 1000]
    #[arg(long, value_name = "NUMBER", env = "WINDLASS_MAX_WAITERS", hide_env = true, help_heading = BOUNDS)]
    pub(crate) max_waiters: Option<usize>,
    /// Clients that watch tasks at once [default: 256]
    #[arg(long, value_name = "NUMBER", env = "WINDLASS_MAX_WATCHERS", hide_env = true, help_heading = BOUNDS)]
    pub(crate) max_watchers: Option<usize>,
    /// Clients that read logs at once [default: 256]
    #[arg(long, value_name = "NUMBER", env = "WINDLASS_MAX_LOG_READERS", hide_env = true, help_heading = BOUNDS)]
    pub(crate) max_log_readers: Option<usize>,
    /// error, warn, info or debug [default: info]
    #[arg(
        long,
        value_enum,
        value_name = "LEVEL",
        env = "WINDLASS_LOG_LEVEL",
        hide_env = true,
        hide_possible_values = true,
        help_heading = LOGS
    )]
    pub(crate) log_level: Option<LogLevel>,
    /// json or console [default: json]
    #[arg(
        long,
        value_enum,
        value_name = "FORMAT",
        env = "WINDLASS_LOG_FORMAT",
        hide_env = true,
        hide_possible_values = true,
        help_heading = LOGS
    )]
    pub(crate) log_format: Option<LogFormat>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RuntimeArg {
    #[default]
    Auto,
    Native,
    Process,
}
