//! What can be typed after `windlass autoscaler`.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Subcommand};

use super::labels::{LogFormat, LogLevel};

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
    #[command(
        about = "Play a cloud, its kubelets and their faults, for demos and tests",
        long_about = SIMCLOUD_ABOUT,
        after_help = SIMCLOUD_EXAMPLES
    )]
    Simcloud(SimcloudArgs),
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
