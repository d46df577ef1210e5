//! The flags of the services, and of commands that must decide as the services do.

use std::{net::SocketAddr, time::Duration};

use clap::{Args, ValueEnum};
use tracing::level_filters::LevelFilter;

use super::ClusterArgs;
use crate::{config::duration, logging};

/// Where help shows what decides about a restore.
const RESTORED: &str = "What is restored";

const SECONDS_PER_DAY: u64 = 24 * 60 * 60;

/// What `run`, `watch` and `process` take.
#[derive(Clone, Debug, Args)]
pub(crate) struct ServiceArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
    /// Nodes a processor works on at once
    #[arg(long, value_name = "NUMBER", default_value_t = 16)]
    pub(crate) workers: usize,
    /// Requests to the API server at once
    #[arg(long, value_name = "NUMBER", default_value_t = 32)]
    pub(crate) max_inflight: usize,
    /// How often a processor looks for Nodes that were missed
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = parse_duration)]
    pub(crate) resync: Duration,
    /// How long after a change a watcher saves it, for the case that nobody sees the deletion
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = parse_duration)]
    pub(crate) checkpoint_delay: Duration,
    /// Address of /livez, /readyz and /metrics; port 0 takes a free one
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:9180")]
    pub(crate) listen: SocketAddr,
    /// Logs: error, warn, info or debug
    #[arg(
        long,
        value_enum,
        value_name = "LEVEL",
        default_value = "info",
        hide_possible_values = true
    )]
    pub(crate) log_level: LogLevel,
    /// Logs: json or console
    #[arg(
        long,
        value_enum,
        value_name = "FORMAT",
        default_value = "json",
        hide_possible_values = true
    )]
    pub(crate) log_format: LogFormat,
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
    #[arg(long, value_name = "DURATION", default_value = "30d", value_parser = parse_duration, help_heading = RESTORED)]
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

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogFormat {
    Json,
    Console,
}

// === impl LogLevel ===

impl From<LogLevel> for LevelFilter {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Error => Self::ERROR,
            LogLevel::Warn => Self::WARN,
            LogLevel::Info => Self::INFO,
            LogLevel::Debug => Self::DEBUG,
        }
    }
}

// === impl LogFormat ===

impl From<LogFormat> for logging::Format {
    fn from(format: LogFormat) -> Self {
        match format {
            LogFormat::Json => Self::Json,
            LogFormat::Console => Self::Console,
        }
    }
}

/// As everywhere (`1h30m`), or in whole days (`30d`).
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let days = text.strip_suffix('d').and_then(|days| days.parse::<u64>().ok());
    days.and_then(|days| days.checked_mul(SECONDS_PER_DAY))
        .map(Duration::from_secs)
        .or_else(|| duration::parse(text))
        .ok_or_else(|| "write `30d`, `10m` or `1m30s`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_durations_too() {
        assert_eq!(parse_duration("30d"), Ok(Duration::from_secs(30 * SECONDS_PER_DAY)));
        assert_eq!(parse_duration("10m"), Ok(Duration::from_secs(600)));
        assert!(parse_duration("1.5d").is_err());
        assert!(parse_duration("99999999999999999d").is_err());
        assert!(parse_duration("soon").is_err());
    }
}
