//! What services log, and how: the same flags for each.

use clap::{Args, ValueEnum};
use tracing::level_filters::LevelFilter;

use crate::logging;

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct LogArgs {
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
