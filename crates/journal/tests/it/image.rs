//! Builds a folder as a crash could have left it.
//!
//! Everything synced is there. Of what was not, each file and the folder's names go their own way,
//! as the [`Loss`] says. What is not modelled: a sector that reads as neither its old nor its new
//! bytes, damage to blocks that were not being written, and a disk that lies about syncs.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use journal::suite::Dice;

use crate::disk::{FileId, Op};

const SECTOR_BYTES: usize = 512;

/// What becomes of operations that were not synced when the power went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// All of them are gone.
    Everything,
    /// None is: the system wrote all of them back just in time.
    Nothing,
    /// Each write is there or not, whatever its order; names are kept up to some point.
    Some,
    /// Each write is there up to a byte inside it, or wholly, or not; names in any subset.
    Torn,
    /// Each sector of each write is there or not; names in any subset.
    Sectors,
}

impl Loss {
    pub(crate) const ALL: [Self; 5] =
        [Self::Everything, Self::Nothing, Self::Some, Self::Torn, Self::Sectors];
}

/// The medium at one moment.
#[derive(Clone, Default)]
pub(crate) struct Medium {
    files: BTreeMap<FileId, File>,
    names: BTreeMap<PathBuf, FileId>,
    /// Changes of names that no sync of their folder covered yet.
    pending_names: Vec<Op>,
}

#[derive(Clone, Default)]
struct File {
    durable: Vec<u8>,
    /// Writes that no sync covered yet.
    pending: Vec<(usize, std::sync::Arc<[u8]>)>,
}

// === impl Medium ===

impl Medium {
    /// Takes in the next operation.
    pub(crate) fn apply(&mut self, op: &Op) {
        match op {
            Op::Create { file, .. } => {
                self.files.insert(*file, File::default());
                self.pending_names.push(op.clone());
            }
            Op::Write { file, offset, bytes } => {
                let offset = usize::try_from(*offset).expect("in memory");
                self.files.entry(*file).or_default().pending.push((offset, bytes.clone()));
            }
            Op::Sync { file } => {
                let file = self.files.entry(*file).or_default();
                for (offset, bytes) in std::mem::take(&mut file.pending) {
                    write(&mut file.durable, offset, &bytes);
                }
            }
            Op::SyncFailed { file } => self.files.entry(*file).or_default().pending.clear(),
            Op::Rename { .. } | Op::Remove { .. } => self.pending_names.push(op.clone()),
            Op::SyncFolder { path } => self.sync_names(path),
        }
    }

    /// Cuts the power and writes what is left to `folder`; paths inside `recorded` go there.
    pub(crate) fn crash(&self, loss: Loss, dice: &mut Dice, recorded: &Path, folder: &Path) {
        let mut names = self.names.clone();
        let kept_until = dice.below(self.pending_names.len() + 1);
        for (at, op) in self.pending_names.iter().enumerate() {
            let is_kept = match loss {
                Loss::Everything => false,
                Loss::Nothing => true,
                Loss::Some => at < kept_until,
                Loss::Torn | Loss::Sectors => dice.one_in(2),
            };
            if is_kept {
                change_names(&mut names, op);
            }
        }
        fs::create_dir_all(folder.join("log")).expect("create");
        for (path, file) in names {
            let content = self.files[&file].after(loss, dice);
            let path = folder.join(path.strip_prefix(recorded).expect("inside"));
            fs::write(path, content).expect("write");
        }
    }

    fn sync_names(&mut self, folder: &Path) {
        let is_inside = |path: &Path| path.parent() == Some(folder);
        let (inside, outside): (Vec<Op>, Vec<Op>) =
            std::mem::take(&mut self.pending_names).into_iter().partition(|op| match op {
                Op::Create { path, .. } | Op::Remove { path } => is_inside(path),
                Op::Rename { to, .. } => is_inside(to),
                _ => unreachable!("only changes of names wait for a folder"),
            });
        inside.iter().for_each(|op| change_names(&mut self.names, op));
        self.pending_names = outside;
    }
}

fn change_names(names: &mut BTreeMap<PathBuf, FileId>, op: &Op) {
    match op {
        Op::Create { file, path } => {
            names.insert(path.clone(), *file);
        }
        Op::Rename { from, to } => {
            if let Some(file) = names.remove(from) {
                names.insert(to.clone(), file);
            }
        }
        Op::Remove { path } => {
            names.remove(path);
        }
        _ => unreachable!("not a change of names"),
    }
}

// === impl File ===

impl File {
    fn after(&self, loss: Loss, dice: &mut Dice) -> Vec<u8> {
        let mut content = self.durable.clone();
        for (offset, bytes) in &self.pending {
            match loss {
                Loss::Everything => {}
                Loss::Nothing => write(&mut content, *offset, bytes),
                Loss::Some => {
                    if dice.one_in(2) {
                        write(&mut content, *offset, bytes);
                    }
                }
                Loss::Torn => write(&mut content, *offset, &bytes[..dice.below(bytes.len() + 1)]),
                Loss::Sectors => write_some_sectors(&mut content, *offset, bytes, dice),
            }
        }
        content
    }
}

fn write(content: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[offset..end].copy_from_slice(bytes);
}

fn write_some_sectors(content: &mut Vec<u8>, offset: usize, bytes: &[u8], dice: &mut Dice) {
    let mut at = 0;
    while at < bytes.len() {
        let to_boundary = SECTOR_BYTES - (offset + at) % SECTOR_BYTES;
        let len = to_boundary.min(bytes.len() - at);
        if dice.one_in(2) {
            write(content, offset + at, &bytes[at..at + len]);
        }
        at += len;
    }
}
