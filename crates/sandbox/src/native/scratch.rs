//! What a command has written to a disk: how much it is, and its end. The command may be hostile: no link
//! is followed, and no tree is too deep.

use std::{
    ffi::CStr,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, renameat, statat, unlinkat},
    io::Errno,
};

/// Files looked at per walk. The shim does nothing else meanwhile, so a walk must end within
/// a fraction of a second.
const ENTRIES_MAX: u32 = 50_000;

/// Directories within each other that are looked into; each takes a descriptor.
const DEPTH_MAX: usize = 128;

const BLOCK_BYTES: u64 = 512;

/// The bytes that files below `dir` take, as far as one bounded walk sees them. The command changes
/// them meanwhile.
pub(super) fn measure(dir: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    let mut entries_left = ENTRIES_MAX;
    let mut open = vec![Dir::new(open_dir(CWD, dir)?)?];
    while let Some(dir) = open.last_mut() {
        let Some(entry) = dir.read() else {
            open.pop();
            continue;
        };
        let entry = entry?;
        if matches!(entry.file_name().to_bytes(), b"." | b"..") {
            continue;
        }
        let Some(left) = entries_left.checked_sub(1) else { break };
        entries_left = left;
        let Some(stat) =
            unless_gone(statat(dir.fd()?, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW))?
        else {
            continue;
        };
        bytes += u64::try_from(stat.st_blocks).unwrap_or(0) * BLOCK_BYTES;
        let is_dir = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        if is_dir && open.len() < DEPTH_MAX {
            let dir = open.last().expect("the directory just read");
            let child = unless_gone(open_dir(dir.fd()?, entry.file_name()))?;
            open.extend(child.map(Dir::new).transpose()?);
        }
    }
    Ok(bytes)
}

/// Removes `dir` with all that is in it; nothing if it is not there. Directories may lie within each
/// other deeper than descriptors or paths go: what lies too deep is moved up and removed from there.
pub(super) fn remove(dir: &Path) -> io::Result<()> {
    let Some(top) = unless_gone(open_dir(CWD, dir))? else { return Ok(()) };
    let mut moved = 0;
    loop {
        empty(top.as_fd(), top.as_fd(), DEPTH_MAX, &mut moved)?;
        match unlinkat(CWD, dir, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY) => {}
            removed => return Ok(removed?),
        }
    }
}

fn empty(
    dir: BorrowedFd<'_>,
    top: BorrowedFd<'_>,
    depth_left: usize,
    moved: &mut u64,
) -> Result<(), Errno> {
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        match unlinkat(dir, name, AtFlags::empty()) {
            Err(Errno::ISDIR) if depth_left == 0 => move_up(dir, name, top, moved)?,
            Err(Errno::ISDIR) => {
                empty(open_dir(dir, name)?.as_fd(), top, depth_left - 1, moved)?;
                unlinkat(dir, name, AtFlags::REMOVEDIR)?;
            }
            removed => removed?,
        }
    }
    Ok(())
}

fn move_up(
    dir: BorrowedFd<'_>,
    name: &CStr,
    top: BorrowedFd<'_>,
    moved: &mut u64,
) -> Result<(), Errno> {
    loop {
        *moved += 1;
        match renameat(dir, name, top, format!("deep-{moved}")) {
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
            result => return result,
        }
    }
}

fn open_dir(at: impl AsFd, path: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(at, path, flags, Mode::empty())
}

/// What vanished, or became something else, since it was listed does not count.
fn unless_gone<T>(result: Result<T, Errno>) -> Result<Option<T>, Errno> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(errno) => Err(errno),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rustix::fs::mkdirat;

    use super::*;

    #[test]
    fn counts_what_is_written_and_follows_no_link() {
        let dir = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("large"), vec![1; 1 << 20]).unwrap();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        fs::write(dir.path().join("a/b/file"), vec![1; 256 << 10]).unwrap();
        std::os::unix::fs::symlink(outside.path(), dir.path().join("link")).unwrap();
        let bytes = measure(dir.path()).unwrap();
        assert!((256 << 10..512 << 10).contains(&bytes), "{bytes}");
    }

    /// Deeper than a process has descriptors, and than any path is long.
    #[test]
    fn no_tree_is_too_deep() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().join("top");
        fs::create_dir(&top).unwrap();
        let mut at = open_dir(CWD, &top).unwrap();
        for _ in 0..2_000 {
            mkdirat(&at, "deep", Mode::RWXU).unwrap();
            at = open_dir(&at, "deep").unwrap();
        }
        measure(&top).unwrap();
        remove(&top).unwrap();
        assert!(!top.exists());
        remove(&top).unwrap();
    }
}
