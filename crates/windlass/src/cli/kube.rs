//! What the commands of all Kubernetes services take: which cluster, and how to print.

use std::path::PathBuf;

use clap::Args;

/// Which cluster is meant.
#[derive(Clone, Debug, Args)]
pub(crate) struct ConnectArgs {
    /// File that says how to reach the cluster [default: $KUBECONFIG, ~/.kube/config, or the pod's
    /// own account]
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Which of its contexts [default: the current one]
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    pub(crate) context: Option<String>,
}

/// As built from `deploy/container`; a cluster finds it once it was pushed or loaded there.
pub(crate) const DEFAULT_IMAGE: &str = concat!("windlass:", env!("CARGO_PKG_VERSION"));

/// How data is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Output {
    #[default]
    Table,
    Json,
    Yaml,
}

/// How objects are written that another program reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ExportFormat {
    #[default]
    Yaml,
    Json,
}

// === impl ExportFormat ===

impl From<ExportFormat> for Output {
    fn from(format: ExportFormat) -> Self {
        match format {
            ExportFormat::Yaml => Self::Yaml,
            ExportFormat::Json => Self::Json,
        }
    }
}
