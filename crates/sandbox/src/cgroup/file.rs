//! Reading and writing the files of a group, with the path in every error.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::Path,
};

use super::Error;

/// Writes in one call: the kernel takes each write as a whole command.
pub(super) fn write(dir: &Path, file: &str, value: &str) -> Result<(), Error> {
    let path = dir.join(file);
    // Never created: a file that is missing is a controller that is missing.
    let written = OpenOptions::new()
        .write(true)
        .open(&path)
        .and_then(|mut file| file.write_all(value.as_bytes()));
    written.map_err(|source| Error::Write { path, value: value.to_owned(), source })
}

pub(super) fn read(dir: &Path, file: &str) -> Result<String, Error> {
    let path = dir.join(file);
    fs::read_to_string(&path).map_err(|source| Error::Read { path, source })
}

/// Like [`read`]; `None` where this kernel has no such file, or the group is gone.
pub(super) fn read_if_there(dir: &Path, file: &str) -> Result<Option<String>, Error> {
    match read(dir, file) {
        Ok(text) => Ok(Some(text)),
        Err(Error::Read { source, .. }) if is_gone(&source) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether the file, or the group it was opened in, does not exist. A file that was opened just before
/// its group was removed says `ENODEV`.
pub(super) fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(rustix::io::Errno::NODEV.raw_os_error())
}

/// The number after `key` in a file of `key value` lines.
pub(super) fn keyed(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_a_whole_word() {
        let events = "oom 3\noom_kill 2\noom_group_kill 0\n";
        assert_eq!(keyed(events, "oom_kill"), Some(2));
        assert_eq!(keyed(events, "oom"), Some(3));
        assert_eq!(keyed(events, "kill"), None);
    }

    #[test]
    fn a_missing_file_is_never_made() {
        let dir = tempfile::tempdir().unwrap();
        assert!(write(dir.path(), "memory.max", "1").is_err());
        assert!(!dir.path().join("memory.max").exists());
        assert_eq!(read_if_there(dir.path(), "memory.max").unwrap(), None);
    }
}
