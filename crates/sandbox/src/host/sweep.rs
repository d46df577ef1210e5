//! Removes the directories of attempts that nobody wants to read any more.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use uuid::Uuid;

use super::Error;
use crate::{AttemptId, Boottime, places::Places};

/// Since when each attempt that has a directory is known to have no task. A restart begins anew: logs
/// are kept longer then, never shorter.
pub(super) type Unwanted = BTreeMap<AttemptId, Boottime>;

/// What to sweep by.
pub(super) struct Sweep<W> {
    pub(super) is_wanted: W,
    /// Without a task.
    pub(super) age_min: Duration,
    pub(super) now: Boottime,
}

pub(super) fn sweep(
    places: &Places,
    unwanted: &mut Unwanted,
    Sweep { is_wanted, age_min, now }: Sweep<impl Fn(Uuid) -> bool>,
) -> Result<usize, Error> {
    let known = std::mem::take(unwanted);
    let mut removed = 0;
    for (task, path) in named(&places.tasks())? {
        if is_wanted(task) {
            continue;
        }
        for (number, dir) in named::<u32>(&path)? {
            let id = AttemptId { task, number };
            if is_in_use(places, id)? {
                continue;
            }
            let since = known.get(&id).copied().unwrap_or(now);
            if since.until(now) < age_min {
                unwanted.insert(id, since);
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

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    /// The hour begins when the task goes, however long ago its last word was written.
    #[test]
    fn a_directory_goes_when_it_had_no_task_for_long_enough() {
        let dir = tempfile::tempdir().unwrap();
        let places = Places::new(dir.path());
        places.create().unwrap();
        let id = AttemptId { task: Uuid::from_u128(7), number: 1 };
        fs::create_dir_all(places.attempt(id)).unwrap();
        let mut unwanted = Unwanted::new();
        let mut at = |seconds, wanted| {
            let now = Boottime(Duration::from_secs(seconds));
            let by = Sweep { is_wanted: |_: Uuid| wanted, age_min: HOUR, now };
            sweep(&places, &mut unwanted, by).unwrap()
        };
        assert_eq!(at(100_000, true), 0, "it has a task");
        assert_eq!(at(200_000, false), 0, "it had one until now");
        assert_eq!(at(203_599, false), 0);
        assert_eq!(at(203_600, false), 1);
    }
}
