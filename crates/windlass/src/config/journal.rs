//! Where the store's data is.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use super::{Error, Settings};

/// What a store is served from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Journal {
    /// A folder of this machine.
    Folder(PathBuf),
    /// What other members serve from too. Who understands the URL is told by its scheme.
    Shared { url: String, is_unsafe_allowed: bool },
}

// === impl Journal ===

impl Journal {
    pub(super) fn of(settings: &Settings, data_dir: &Path) -> Result<Self, Error> {
        let is_unsafe_allowed = settings.is_on("allow-unsafe")?;
        let Some(url) = settings.given("journal") else {
            return Ok(Self::Folder(data_dir.to_owned()));
        };
        if !is_known(url) {
            return Err(settings.bad_value("journal", "ignite://HOST:PORT[,HOST:PORT…]"));
        }
        Ok(Self::Shared { url: url.to_owned(), is_unsafe_allowed })
    }
}

impl fmt::Display for Journal {
    /// Without what may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => path.display().fmt(f),
            Self::Shared { url, .. } => {
                let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
                write!(f, "{scheme}://{}", rest.rsplit_once('@').map_or(rest, |(_, hosts)| hosts))
            }
        }
    }
}

fn is_known(url: &str) -> bool {
    url.split_once("://").is_some_and(|(scheme, _)| scheme == journal_ignite::SCHEME)
}
