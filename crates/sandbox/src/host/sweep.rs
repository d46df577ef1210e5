//! Removes the directories of attempts that nobody wants to read any more.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};

use uuid::Uuid;

use super::Error;
use crate::{AttemptId, boottime::wall_time, places::Places};

pub(super) fn sweep(
    places: &Places,
    is_wanted: impl Fn(Uuid) -> bool,
    age_min: Duration,
) -> Result<usize, Error> {
    let mut removed = 0;
    for (task, path) in named(&places.tasks())? {
        if is_wanted(task) {
            continue;
        }
        for (number, dir) in named::<u32>(&path)? {
            if is_in_use(places, AttemptId { task, number })? || age(&dir)? < age_min {
                continue;
            }
            fs::remove_dir_all(&dir).map_err(|source| Error::Remove { path: dir, source })?;
            removed += 1;
        }
        // The last one takes the task's directory along; as long as another is there it is not empty.
        match fs::remove_dir(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
            Err(source) => return Err(Error::Remove { path, source }),
        }
    }
    Ok(removed)
}

/// The entries of a directory whose names mean something.
fn named<T: std::str::FromStr>(dir: &Path) -> Result<Vec<(T, PathBuf)>, Error> {
    let read = || {
        let mut found = Vec::new();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let name = entry.file_name();
            found.extend(name.to_str().and_then(|name| Some((name.parse().ok()?, entry.path()))));
        }
        Ok(found)
    };
    read().map_err(|source| Error::Read { path: dir.to_owned(), source })
}

/// An attempt that has a record runs, or its result was not recorded yet.
fn is_in_use(places: &Places, id: AttemptId) -> Result<bool, Error> {
    let path = places.record(id);
    path.try_exists().map_err(|source| Error::Read { path, source })
}

/// How long nothing was written; by the newest file, because appending does not touch a directory.
fn age(dir: &Path) -> Result<Duration, Error> {
    let newest = || {
        let mut newest = modified(&fs::metadata(dir)?);
        for entry in fs::read_dir(dir)? {
            newest = newest.max(modified(&entry?.metadata()?));
        }
        Ok(newest)
    };
    let newest = newest().map_err(|source| Error::Read { path: dir.to_owned(), source })?;
    Ok(wall_time().saturating_sub(newest))
}

/// Since the epoch.
fn modified(metadata: &fs::Metadata) -> Duration {
    Duration::from_secs(u64::try_from(metadata.mtime()).unwrap_or(0))
}
