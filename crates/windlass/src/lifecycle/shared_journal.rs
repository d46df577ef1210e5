//! The journals that several members share, told apart by the scheme of their URL.

use journal_ignite::{Error as IgniteError, IgniteJournal, Options, UrlError};

/// Why such a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the URL of the journal is wrong")]
    Url(#[source] UrlError),
    #[error("the journal could not be created")]
    Create(#[source] Box<IgniteError>),
    #[error("the journal could not be opened")]
    Open(#[source] Box<IgniteError>),
    #[error("the journal could not be verified")]
    Verify(#[source] Box<IgniteError>),
}

// === impl Error ===

impl Error {
    pub(crate) fn is_usage(&self) -> bool {
        matches!(self, Self::Url(_))
    }

    /// Whether nobody answers at the addresses of the URL.
    pub(crate) fn is_unreachable(&self) -> bool {
        match self {
            Self::Url(_) => false,
            Self::Create(source) | Self::Open(source) | Self::Verify(source) => {
                source.is_unreachable()
            }
        }
    }

    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Self::Url(_) => "write ignite://HOST:PORT[,HOST:PORT…]",
            Self::Create(source) | Self::Open(source) | Self::Verify(source) => hint(source),
        }
    }
}

fn hint(error: &IgniteError) -> &'static str {
    match error {
        IgniteError::Disagree { .. } => {
            "members serve HISTORY: a row of KV that differs can be set right with SQL"
        }
        IgniteError::NotThere { .. } => {
            "`windlass store ignite init <url>` creates it, once for all members"
        }
        IgniteError::UnsafeSettings { .. } => {
            "change the settings, or accept the loss with --allow-unsafe"
        }
        IgniteError::NoRest | IgniteError::Rest { .. } => {
            "name the REST addresses of the nodes: ignite://…?rest=HOST:PORT[,…]"
        }
        IgniteError::WrongCredentials { .. } => {
            "write ignite://USER:PASSWORD@HOST:PORT, or set ETCD_JOURNAL to it"
        }
        IgniteError::Foreign { .. } => "choose another schema: ignite://…?schema=NAME",
        IgniteError::Format { .. } => {
            "use the windlass that wrote it, or another schema: ignite://…?schema=NAME"
        }
        IgniteError::MissingRevision { .. } | IgniteError::BadRow { .. } => {
            "somebody else changed or removed rows; members stop rather than serve what is left"
        }
        error if error.is_of_certificates() => {
            "check what `ca=`, `cert=`, `key=` and `name=` of the URL say"
        }
        _ => "check that the nodes run, and that these are their client addresses",
    }
}

/// Where to find it, and what of it is accepted.
pub(crate) fn options(url: &str, is_unsafe_allowed: bool) -> Result<Options, Error> {
    let mut options = Options::from_url(url).map_err(Error::Url)?;
    options.is_unsafe_allowed = is_unsafe_allowed;
    Ok(options)
}

pub(super) fn open(url: &str, is_unsafe_allowed: bool) -> Result<IgniteJournal, super::Error> {
    let options = options(url, is_unsafe_allowed);
    let opened = options.and_then(|options| {
        IgniteJournal::open(options).map_err(|source| Error::Open(source.into()))
    });
    opened.map_err(|source| super::Error::SharedJournal { source })
}
