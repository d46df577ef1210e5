//! What can be wrong with a configuration. Each error names where the setting came from, and
//! carries the one hint that ends it on the screen.

use std::path::PathBuf;

use super::Origin;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("unknown flag `--{name}`")]
    UnknownFlag { name: String, suggestion: Option<&'static str> },
    #[error("flag `--{name}` needs a value")]
    MissingValue { name: &'static str },
    #[error("`{argument}` is not a flag")]
    NotAFlag { argument: String },
    #[error("cannot read configuration file {}", path.display())]
    ReadFile { path: PathBuf, source: std::io::Error },
    #[error("{}: not YAML with etcd's names", path.display())]
    ParseFile { path: PathBuf, source: Box<serde_saphyr::Error> },
    #[error("{}:{line}: unknown key `{key}`", path.display())]
    UnknownKey { path: PathBuf, line: u64, key: String, suggestion: Option<String> },
    #[error("{}:{line}: `{key}` holds the wrong kind of value", path.display())]
    WrongNode { path: PathBuf, line: u64, key: String, expected: &'static str },
    #[error("{origin}: invalid value `{value}`")]
    BadValue { origin: Origin, value: String, expected: String },
    #[error("{origin}: `{value}`: {problem}")]
    BadUrl { origin: Origin, value: String, problem: &'static str },
    #[error("{origin} cannot be `{value}`: {reason}")]
    Unsupported { origin: Origin, value: String, reason: &'static str },
    #[error("{problem}")]
    Contradiction { problem: String, hint: &'static str },
}

// === impl Error ===

impl Error {
    /// What to do about it.
    pub(crate) fn hint(&self) -> String {
        match self {
            Self::UnknownFlag { suggestion: Some(name), .. } => format!("did you mean `--{name}`?"),
            Self::UnknownKey { suggestion: Some(key), .. } => format!("did you mean `{key}`?"),
            Self::UnknownFlag { .. } | Self::UnknownKey { .. } | Self::NotAFlag { .. } => {
                "`windlass store serve --help` lists every flag".into()
            }
            Self::MissingValue { name } => format!("write `--{name}=<value>`"),
            Self::ReadFile { .. } => {
                "check the path after --config-file, and who may read it".into()
            }
            Self::ParseFile { .. } => {
                "the keys are etcd's flag names, without dashes in front".into()
            }
            Self::WrongNode { expected, .. } => format!("write {expected}"),
            Self::BadValue { expected, .. } => format!("give {expected}"),
            Self::BadUrl { .. } => {
                "write `http://127.0.0.1:2379` or `unix:///run/windlass.sock`".into()
            }
            Self::Unsupported { .. } => "leave the setting out".into(),
            Self::Contradiction { hint, .. } => (*hint).into(),
        }
    }
}
