//! The flags of the services, and of commands that must decide as the services do.

use std::{net::SocketAddr, time::Duration};

use clap::{Args, ValueEnum};

use super::ClusterArgs;
use crate::cli::{duration, logs::LogArgs};

/// Where help shows what decides about a restore.
const RESTORED: &str = "What is restored";

/// What `run`, `watch` and `process` take.
#[derive(Clone, Debug, Args)]
pub(crate) struct ServiceArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
    /// Log what would be written and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Nodes a processor works on at once
    #[arg(long, value_name = "NUMBER", default_value_t = 16)]
    pub(crate) workers: usize,
    /// Requests to the API server at once
    #[arg(long, value_name = "NUMBER", default_value_t = 32)]
    pub(crate) max_inflight: usize,
    /// How often a processor looks for Nodes that were missed
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration::parse)]
    pub(crate) resync: Duration,
    /// How long after a change a watcher saves it, for the case that nobody sees the deletion
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration::parse)]
    pub(crate) checkpoint_delay: Duration,
    /// Address of /livez, /readyz and /metrics; port 0 takes a free one
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:9180")]
    pub(crate) listen: SocketAddr,
    #[command(flatten)]
    pub(crate) logs: LogArgs,
}

/// What is restored, and from how old a record.
#[derive(Clone, Debug, Args)]
pub(crate) struct PolicyArgs {
    /// Treat keys that match as `stored`, `prefer-live` or `live`; `*` matches any text; the first
    /// match counts; may be repeated
    #[arg(long = "label-policy", value_name = "PATTERN=CLASS", help_heading = RESTORED)]
    pub(crate) label_policy: Vec<String>,
    /// Labels that kubelets, clouds and detectors write: as the built-in policy says, or all as
    /// stored
    #[arg(
        long,
        value_enum,
        value_name = "policy|stored",
        default_value = "policy",
        hide_possible_values = true,
        help_heading = RESTORED
    )]
    pub(crate) system_labels: SystemLabelsArg,
    /// Replace the labels of the Node, or add those it lacks
    #[arg(
        long,
        value_enum,
        value_name = "replace|merge",
        default_value = "replace",
        hide_possible_values = true,
        help_heading = RESTORED
    )]
    pub(crate) restore_mode: RestoreModeArg,
    /// Where a restored Node is marked as such
    #[arg(
        long,
        value_enum,
        value_name = "both|label|annotation",
        default_value = "both",
        hide_possible_values = true,
        help_heading = RESTORED
    )]
    pub(crate) marker: MarkerArg,
    /// Keys below node-restriction.kubernetes.io, which kubelets may not set
    #[arg(
        long,
        value_enum,
        value_name = "restore|skip",
        default_value = "restore",
        hide_possible_values = true,
        help_heading = RESTORED
    )]
    pub(crate) node_restriction: NodeRestrictionArg,
    /// Age from which a record is neither restored nor kept
    #[arg(long, value_name = "DURATION", default_value = "30d", value_parser = duration::parse, help_heading = RESTORED)]
    pub(crate) retention: Duration,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum SystemLabelsArg {
    Policy,
    Stored,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum RestoreModeArg {
    Replace,
    Merge,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum MarkerArg {
    Both,
    Label,
    Annotation,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum NodeRestrictionArg {
    Restore,
    Skip,
}
