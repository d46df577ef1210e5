//! `windlass store import`: what a running etcd holds, as a new data folder.
//!
//! All keys are read as they were at one revision, so the other store may go on meanwhile; what it
//! writes later is not taken over.

mod source;

use std::path::PathBuf;

use journal::{AppendError, EmbeddedJournal, Epoch, Image, Journal, embedded};
use store::import::{Auth, Beside, Import};

use self::source::Source;
use super::snapshot::check_is_free;
use crate::{
    cli::ImportArgs,
    report::{self, Exit, Failure, Outcome},
};

/// Keys between two words about how far it is.
const PROGRESS_KEYS: usize = 100_000;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the answer of the other store lacks {what}")]
    Incomplete { what: &'static str },
    #[error("the other store answered something else than it was asked at revision {revision}")]
    Changed { revision: i64 },
    #[error("what the other store holds cannot be taken over")]
    Unsound {
        #[source]
        source: store::import::Error,
    },
    #[error("the new journal in {} cannot be opened", path.display())]
    Journal {
        path: PathBuf,
        #[source]
        source: journal::Error,
    },
    #[error("the new journal in {} cannot be written", path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: AppendError,
    },
}

/// A data folder that is being filled.
struct Target {
    path: PathBuf,
    journal: EmbeddedJournal,
    epoch: Epoch,
}

pub(crate) async fn run(arguments: &ImportArgs) -> Outcome {
    let dir = &arguments.data_dir;
    check_is_free(dir)?;
    let mut source = Source::connect(arguments).await?;
    let revision = source.revision();
    let keys = source.keys().await?;
    report::words(&format!("importing {} keys at revision {revision}", keys.len()));

    let target = Target::create(dir.clone())?;
    let mut import = Import::new(revision);
    target.ingest(&import.begin())?;
    let mut done = 0;
    for chunk in source::chunks(&keys) {
        for kv in source.values(chunk).await? {
            let image = import.push(kv).map_err(|source| Error::Unsound { source })?;
            image.map_or(Ok(()), |image| target.ingest(&image))?;
        }
        if (done + chunk.len()) / PROGRESS_KEYS > done / PROGRESS_KEYS {
            report::words(&format!("{} of {} keys", done + chunk.len(), keys.len()));
        }
        done += chunk.len();
    }
    let beside = Beside { leases: source.leases().await?, auth: source.auth().await? };
    let summary = summary(&beside);
    target.ingest(&import.finish(beside))?;
    report::words(&format!("imported {done} keys at revision {revision}{summary}"));
    let dir = dir.display();
    report::words(&format!("serve it with `windlass store serve --data-dir {dir}`"));
    Ok(())
}

/// What was imported beside keys, if anything was; names those who cannot log in.
fn summary(beside: &Beside) -> String {
    let Beside { leases, auth: Auth { users, roles, .. } } = beside;
    let mut text = String::new();
    if !leases.is_empty() {
        text += &format!(", {} leases", leases.len());
    }
    if !users.is_empty() {
        text += &format!(", {} users and {} roles", users.len(), roles.len());
    }
    let locked: Vec<_> = users
        .iter()
        .filter(|user| user.password.is_empty())
        .map(|user| String::from_utf8_lossy(&user.name))
        .collect();
    if !locked.is_empty() {
        text += "\npasswords cannot be read; set new ones with `etcdctl user passwd` for ";
        text += &locked.join(", ");
    }
    text
}

// === impl Target ===

impl Target {
    fn create(path: PathBuf) -> Result<Self, Error> {
        let failed = |source| Error::Journal { path: path.clone(), source };
        let journal = EmbeddedJournal::open(&path, embedded::Options::default()).map_err(failed)?;
        let epoch = journal.claim().map_err(failed)?;
        Ok(Self { path, journal, epoch })
    }

    fn ingest(&self, image: &Image) -> Result<(), Error> {
        let written = self.journal.ingest(self.epoch, image);
        written.map_err(|source| Error::Write { path: self.path.clone(), source })
    }
}

// === impl Error ===

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let (exit, hint) = match &error {
            Error::Incomplete { .. } => {
                (Exit::No, "is it an etcd 3.5 or later that answers there?")
            }
            Error::Changed { .. } | Error::Unsound { .. } => {
                (Exit::No, "check the members of the other store with `etcdctl endpoint hashkv`")
            }
            Error::Journal { .. } | Error::Write { .. } => {
                (Exit::No, "remove the folder, check the disk, and import again")
            }
        };
        Self::new(exit, error).with_hint(hint)
    }
}
