//! How a command that asks a running store something is told where it is and who asks.

use std::{convert::Infallible, fmt, path::PathBuf, str::FromStr};

use clap::Args;

/// How to reach a running store.
#[derive(Debug, Args)]
pub(crate) struct ClientArgs {
    /// Where the store serves clients
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:2379")]
    pub(crate) endpoint: String,
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
    #[command(flatten)]
    pub(crate) login: LoginArgs,
}

/// How a client knows the store, and the store the client.
#[derive(Debug, Default, Args)]
pub(crate) struct TlsArgs {
    /// PEM file of the authority that signed the certificate of the store
    #[arg(long, value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,
    /// PEM file of the client certificate
    #[arg(long, value_name = "FILE")]
    pub(crate) cert: Option<PathBuf>,
    /// PEM file of its key
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
}

/// Who asks.
#[derive(Debug, Args)]
pub(crate) struct LoginArgs {
    /// A user with the role root, if authentication is enabled there
    #[arg(long, value_name = "NAME[:PASSWORD]", env = "WINDLASS_USER", hide_env_values = true)]
    pub(crate) user: Option<Secret>,
    /// The password, if it does not stand in --user
    #[arg(
        long,
        value_name = "PASSWORD",
        env = "WINDLASS_PASSWORD",
        hide_env_values = true,
        requires = "user"
    )]
    pub(crate) password: Option<Secret>,
}

/// Text that nobody prints by accident.
#[derive(Clone)]
pub(crate) struct Secret(String);

// === impl Secret ===

impl Secret {
    pub(crate) fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl FromStr for Secret {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self::new(text))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}
