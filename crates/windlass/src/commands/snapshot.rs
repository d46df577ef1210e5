//! `windlass store snapshot save`, `restore` and the checking of snapshot files.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufReader, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use etcd_api::etcdserverpb::{
    SnapshotRequest, SnapshotResponse, maintenance_client::MaintenanceClient,
};
use journal::{EmbeddedJournal, Journal, embedded};
use serde_json::json;
use store::snapshot::{self, ReadError, Summary};
use tonic::Streaming;

use crate::{
    cli::{Output, RestoreArgs, SaveArgs},
    client::{self, Session},
    report::{self, Exit, Failure, Outcome},
};

/// A snapshot holds all that the store does, secrets too.
const FILE_MODE: u32 = 0o600;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("cannot {step} {}", path.display())]
    File {
        step: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} is not a good snapshot", path.display())]
    Bad {
        path: PathBuf,
        #[source]
        source: ReadError,
    },
    #[error("{} cannot be filled", path.display())]
    Unfilled {
        path: PathBuf,
        #[source]
        source: ReadError,
    },
    #[error("{} exists and is not empty", path.display())]
    NotEmpty { path: PathBuf },
    #[error("the new journal in {} cannot be written", path.display())]
    Journal {
        path: PathBuf,
        #[source]
        source: journal::Error,
    },
}

/// Writes beside the target and renames, so that a file of that name is always a whole snapshot.
pub(crate) async fn save(arguments: &SaveArgs) -> Outcome {
    let session = client::open(&arguments.client).await?;
    let request = session.request(SnapshotRequest {});
    let answer = MaintenanceClient::new(session.channel()).snapshot(request).await;
    let chunks = answer.map_err(|refusal| session.refused(refusal))?.into_inner();
    let partial = partial_path(&arguments.file);
    let target = create(&partial).map_err(|source| file("create", &partial, source))?;
    let received = receive(&session, chunks, (target, &partial)).await;
    let saved = received.and_then(|()| keep(&partial, &arguments.file));
    if saved.is_err() {
        discard(&partial);
    }
    saved
}

fn keep(partial: &Path, named: &Path) -> Outcome {
    let Summary { revision, bytes, .. } = verify(partial)?;
    fs::rename(partial, named).map_err(|source| file("rename", partial, source))?;
    report::words(&format!("saved revision {revision} in {} ({bytes} bytes)", named.display()));
    Ok(())
}

/// Makes a data folder from a snapshot.
pub(crate) fn restore(arguments: &RestoreArgs) -> Outcome {
    let dir = &arguments.data_dir;
    check_is_free(dir)?;
    // The digest stands at the end, so all of it is read before anything is written.
    verify(&arguments.file)?;
    let journal_error = |source| Error::Journal { path: dir.clone(), source };
    let journal =
        EmbeddedJournal::open(dir, embedded::Options::default()).map_err(journal_error)?;
    let epoch = journal.claim().map_err(journal_error)?;
    let reader = open(&arguments.file)?;
    let summary = snapshot::restore(reader, &journal, epoch)
        .map_err(|source| Error::of_restore(arguments, source))?;
    let (revision, dir) = (summary.revision, dir.display());
    report::words(&format!("restored revision {revision} into {dir}"));
    report::words(&format!("serve it with `windlass store serve --data-dir {dir}`"));
    Ok(())
}

/// Answers whether a snapshot file is sound.
pub(crate) fn run_verify(path: &Path, output: Output) -> Outcome {
    let Summary { revision, compacted, changes, leases, bytes } = verify(path)?;
    let path = path.display();
    match output {
        Output::Table => report::data(&format!(
            "{path} is sound: revision {revision}, {changes} changes, {leases} leases, {bytes} bytes"
        )),
        Output::Json => report::data(
            &json!({
                "revision": revision,
                "compacted": compacted,
                "changes": changes,
                "leases": leases,
                "bytes": bytes,
            })
            .to_string(),
        ),
    }
}

async fn receive(
    session: &Session,
    mut chunks: Streaming<SnapshotResponse>,
    (mut target, path): (File, &Path),
) -> Outcome {
    while let Some(chunk) = chunks.message().await.map_err(|refusal| session.refused(refusal))? {
        target.write_all(&chunk.blob).map_err(|source| file("write", path, source))?;
    }
    target.sync_all().map_err(|source| file("sync", path, source))?;
    Ok(())
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(FILE_MODE).open(path)
}

fn verify(path: &Path) -> Result<Summary, Error> {
    snapshot::verify(open(path)?).map_err(|source| Error::Bad { path: path.to_owned(), source })
}

fn open(path: &Path) -> Result<BufReader<File>, Error> {
    File::open(path).map(BufReader::new).map_err(|source| file("open", path, source))
}

/// A new store never mixes with what was there before.
pub(super) fn check_is_free(dir: &Path) -> Result<(), Error> {
    match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(file("list", dir, source)),
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(Error::NotEmpty { path: dir.to_owned() }),
        },
    }
}

/// Backups that fail one night after the other would fill the disk.
fn discard(partial: &Path) {
    match fs::remove_file(partial) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            report::words(&format!("warning: {} stays: {error}", partial.display()));
        }
        _ => {}
    }
}

fn partial_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

fn file(step: &'static str, path: &Path, source: io::Error) -> Error {
    Error::File { step, path: path.to_owned(), source }
}

// === impl Error ===

impl Error {
    /// The file was sound when it was read before, so what fails now is mostly the folder.
    fn of_restore(RestoreArgs { file, data_dir }: &RestoreArgs, source: ReadError) -> Self {
        match source {
            ReadError::Load { .. } => Self::Unfilled { path: data_dir.clone(), source },
            source => Self::Bad { path: file.clone(), source },
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let hint = match &error {
            Error::File { .. } => "check the path, and who may read and write it",
            Error::Bad { source: ReadError::NotASnapshot, .. } => {
                "a snapshot of etcd itself cannot be read here"
            }
            Error::Bad { .. } => "take the snapshot again",
            Error::NotEmpty { .. } => "name a folder that does not exist yet",
            Error::Journal { .. } | Error::Unfilled { .. } => {
                "mend the cause, remove the folder and restore again"
            }
        };
        Self::new(Exit::No, error).with_hint(hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk that was full was taken for a snapshot that is not good.
    #[test]
    fn what_cannot_be_restored_is_named() {
        let arguments = RestoreArgs { file: "a.snap".into(), data_dir: "folder".into() };
        let check = |source, expected| {
            assert_eq!(Error::of_restore(&arguments, source).to_string(), expected);
        };
        let source = journal::AppendError::TooLarge { bytes: 2, bytes_max: 1 };
        check(ReadError::Load { source }, "folder cannot be filled");
        check(ReadError::Digest, "a.snap is not a good snapshot");
    }
}
