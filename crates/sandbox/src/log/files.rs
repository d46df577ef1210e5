//! The files of one log in their directory: `log.0`, `log.1` and so on, the smallest numbers gone
//! when there were too many.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use super::{
    Error,
    format::{FILE_HEADER_BYTES, decode_file_header},
};
use crate::places::unless_missing;

pub(super) fn path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("log.{number}"))
}

/// The numbers of the files there are, in order; none if there is no directory.
pub(super) fn list(dir: &Path) -> Result<Vec<u64>, Error> {
    let on_list = |source| Error::List { path: dir.to_owned(), source };
    let Some(entries) = unless_missing(fs::read_dir(dir)).map_err(on_list)? else {
        return Ok(Vec::new());
    };
    let mut numbers = Vec::new();
    for entry in entries {
        let name = entry.map_err(on_list)?.file_name();
        numbers.extend(name.to_str().and_then(number_of));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

fn number_of(name: &str) -> Option<u64> {
    let number: u64 = name.strip_prefix("log.")?.parse().ok()?;
    (name == format!("log.{number}")).then_some(number)
}

/// Opens a file and tells the logical offset at which it begins. `None` if it is gone, or its header
/// is not there: not yet, or not whole since a crash.
pub(super) fn open(dir: &Path, number: u64) -> Result<Option<(File, u64)>, Error> {
    let path = path(dir, number);
    let Some(file) = unless_missing(File::open(&path))
        .map_err(|source| Error::Open { path: path.clone(), source })?
    else {
        return Ok(None);
    };
    let mut header = [0; FILE_HEADER_BYTES];
    match file.read_exact_at(&mut header, 0) {
        Ok(()) => Ok(decode_file_header(&header).map(|start| (file, start))),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(source) => Err(Error::Read { path, source }),
    }
}
