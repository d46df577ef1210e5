//! How opening, reading and writing fail, in words for whoever runs the grid.

use std::{fmt, io, path::PathBuf, sync::Arc, time::Duration};

use mvcc::Revision;

/// Why the journal on Ignite could not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(
        "`{name}` cannot name a schema: capitals, digits and `_` can, beginning with a capital"
    )]
    SchemaName { name: String },
    #[error("cannot start the journal's own threads")]
    Threads {
        #[source]
        source: Arc<io::Error>,
    },
    #[error("cannot read {}", path.display())]
    Pem {
        path: PathBuf,
        #[source]
        source: rustls::pki_types::pem::Error,
    },
    #[error("the certificates for the grid cannot be used")]
    Certificates {
        #[source]
        source: rustls::Error,
    },
    #[error("user or password are wrong")]
    WrongCredentials {
        #[source]
        source: ignite_client::Error,
    },
    #[error("{step}")]
    Grid {
        step: &'static str,
        #[source]
        source: ignite_client::Error,
    },
    #[error("HEAD was not told within {} ms", waited.as_millis())]
    NoAnswer { waited: Duration },
    #[error("there is no journal in schema {schema}: create it with `init`")]
    NotThere { schema: String },
    #[error("schema {schema} holds something else: {what}")]
    Foreign { schema: String, what: String },
    #[error("schema {schema} has format {found}, this program reads {supported}")]
    Format { schema: String, found: i32, supported: i32 },
    #[error("the grid's settings could lose acknowledged writes: {}", list(unsafe_settings))]
    UnsafeSettings { unsafe_settings: Vec<Unsafe> },
    #[error("the settings of the grid cannot be read from {address}")]
    Rest {
        address: String,
        #[source]
        source: Arc<io::Error>,
    },
    #[error("the settings of the grid are unknown: no address of its REST interface was given")]
    NoRest,
    #[error("column {column} of {table} holds {found}")]
    BadRow { table: &'static str, column: &'static str, found: String },
    #[error("revision {revision} is missing in HISTORY")]
    MissingRevision { revision: Revision },
    #[error("KV does not show what HISTORY says of key {key}: {kv}, instead of {history}")]
    Disagree { key: String, history: String, kv: String },
    #[error("revision {revision} was forgotten before it was read")]
    Forgotten { revision: Revision },
    #[error("other writers were in the way {attempts} times in a row")]
    Contended {
        attempts: u32,
        #[source]
        source: ignite_client::Error,
    },
    #[error("the journal takes no more writes, because an earlier one failed")]
    Stopped,
    #[error("the grid did not answer before the end")]
    Hurried,
}

/// A setting that is not safe, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsafe {
    pub setting: String,
    pub found: String,
    pub needed: String,
}

/// What every step of the grid may fail with, put into the words of this crate.
pub(crate) trait Step<T> {
    fn step(self, step: &'static str) -> Result<T, Error>;
}

// === impl Error ===

impl Error {
    /// Whether no node answered, so that nothing is known of the journal.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::Grid { source, .. } => is_unreachable(source),
            Self::NoAnswer { .. } => true,
            _ => false,
        }
    }

    /// Whether more was asked for at once than one message may take.
    pub(crate) fn is_too_large(&self) -> bool {
        matches!(self, Self::Grid { source: ignite_client::Error::TooLarge { .. }, .. })
    }

    /// Whether one of both sides did not take the other's certificate.
    #[must_use]
    pub fn is_of_certificates(&self) -> bool {
        match self {
            Self::Pem { .. } | Self::Certificates { .. } => true,
            Self::Grid { source, .. } => is_of_certificates(source),
            _ => false,
        }
    }
}

fn is_unreachable(error: &ignite_client::Error) -> bool {
    use ignite_client::Error as Client;
    match error {
        Client::Connect { .. } => !is_of_certificates(error),
        Client::Silent { .. } | Client::NoGreeting { .. } | Client::Lost { .. } => true,
        Client::NoneUsable { source, .. } => is_unreachable(source),
        _ => false,
    }
}

fn is_of_certificates(error: &ignite_client::Error) -> bool {
    use ignite_client::Error as Client;
    match error {
        // What TLS refuses, it calls invalid data.
        Client::Connect { source, .. } => source.kind() == io::ErrorKind::InvalidData,
        Client::NoneUsable { source, .. } => is_of_certificates(source),
        _ => false,
    }
}

impl From<Error> for journal::Error {
    fn from(source: Error) -> Self {
        match source {
            Error::Forgotten { revision } => Self::Forgotten { revision },
            Error::BadRow { .. } | Error::MissingRevision { .. } | Error::Disagree { .. } => {
                Self::Damaged { source: Box::new(source) }
            }
            source => Self::Unavailable { source: Box::new(source) },
        }
    }
}

impl From<Error> for journal::AppendError {
    fn from(source: Error) -> Self {
        Self::Failed { source: source.into() }
    }
}

// === impl Unsafe ===

impl fmt::Display for Unsafe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is {}, it must be {}", self.setting, self.found, self.needed)
    }
}

fn list(unsafe_settings: &[Unsafe]) -> String {
    unsafe_settings.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

// === impl Step ===

impl<T> Step<T> for Result<T, ignite_client::Error> {
    fn step(self, step: &'static str) -> Result<T, Error> {
        self.map_err(|source| {
            if source.is_wrong_credentials() {
                Error::WrongCredentials { source }
            } else {
                Error::Grid { step, source }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_answer_is_told_from_who_refuses() {
        let check = |kind: io::ErrorKind| {
            let connect = ignite_client::Error::Connect {
                address: "a:1".to_owned(),
                source: Arc::new(kind.into()),
            };
            let source = ignite_client::Error::NoneUsable {
                addresses: "a:1, b:1".to_owned(),
                source: Box::new(connect),
            };
            let error = Error::Grid { step: "connect to the grid", source };
            (error.is_unreachable(), error.is_of_certificates())
        };
        assert_eq!(check(io::ErrorKind::ConnectionRefused), (true, false));
        assert_eq!(check(io::ErrorKind::InvalidData), (false, true));
        let absent = Error::NotThere { schema: "W".to_owned() };
        assert!(!absent.is_unreachable() && !absent.is_of_certificates());
    }
}
