//! What can be typed after `windlass ca`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::cli::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum CaCommand {
    /// Make the authority of a cluster: a certificate that everybody gets, and a key that stays here
    Init(InitArgs),
    /// Sign the certificate of a node or of a client, valid for 90 days
    Issue(IssueArgs),
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// The folder to make; it must hold no authority yet
    #[arg(long, value_name = "DIR", default_value = "ca")]
    pub(crate) dir: PathBuf,
    /// How to print the answer
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("whose").required(true))]
pub(crate) struct IssueArgs {
    /// For the node of this name; it serves and asks with it
    #[arg(long, value_name = "NAME", group = "whose")]
    pub(crate) node: Option<String>,
    /// For a person or a program of this name, which only asks
    #[arg(long, value_name = "NAME", group = "whose")]
    pub(crate) client: Option<String>,
    /// A name or address by which the node is reached; may be repeated [default: its name,
    /// localhost, 127.0.0.1 and ::1]
    #[arg(long = "host", value_name = "HOST", conflicts_with = "client")]
    pub(crate) hosts: Vec<String>,
    /// The folder of the authority; the new files are written there
    #[arg(long, value_name = "DIR", default_value = "ca")]
    pub(crate) dir: PathBuf,
    /// How to print the answer
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}
