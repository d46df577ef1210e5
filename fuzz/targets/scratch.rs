//! Folders for journals that live as long as one input. Owns where they are: in memory if the system
//! has such a place, because every one is synced and thrown away.

use std::path::Path;

use tempfile::TempDir;

const MEMORY: &str = "/dev/shm";

pub(crate) fn folder() -> TempDir {
    let made = match Path::new(MEMORY).is_dir() {
        true => tempfile::tempdir_in(MEMORY),
        false => tempfile::tempdir(),
    };
    made.expect("a scratch folder can be made")
}
