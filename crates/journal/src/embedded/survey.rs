//! Finds out which files make up the log, from names and header pages alone. Changes nothing, so
//! that an inspection can use it on a folder that must stay as it is.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use uuid::Uuid;

use super::{
    disk::DiskFile,
    folder::{self, Files},
    segment::{self, Extent, Header},
};
use crate::{Error, error::At};

/// A segment file with a sound header.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) path: PathBuf,
    pub(super) file: Arc<dyn DiskFile>,
    pub(super) header: Header,
}

/// The files of a log, sorted by their part in it.
#[derive(Debug)]
pub(super) struct Survey {
    /// The segments that count, in order.
    pub(super) chain: Vec<Candidate>,
    /// What a crash left behind: replaced segments, unfinished files, indexes of nothing.
    pub(super) leftovers: Vec<PathBuf>,
    pub(super) spares: Vec<PathBuf>,
    /// Whether the newest segment has an index, which only sealed ones get.
    pub(super) is_newest_sealed: bool,
    /// The largest id in use.
    pub(super) last_id: u64,
}

// === impl Survey ===

impl Survey {
    pub(super) fn of(candidates: Vec<Candidate>, files: Files) -> Self {
        let segment_ids = candidates.iter().map(|found| found.header.id);
        let last_id =
            segment_ids.chain(files.spares.iter().filter_map(|path| spare_id(path))).max();
        let headers: Vec<Header> = candidates.iter().map(|found| found.header).collect();
        let (mut chain, replaced): (Vec<_>, Vec<_>) = candidates
            .into_iter()
            .partition(|found| !headers.iter().any(|other| replaces(other, &found.header)));
        chain.sort_by_key(|found| found.header.first_sequence);
        let indexes: BTreeSet<PathBuf> =
            chain.iter().map(|found| folder::sidecar_of(&found.path)).collect();
        let newest = chain.last().map(|found| folder::sidecar_of(&found.path));
        let is_newest_sealed = newest.is_some_and(|index| files.sidecars.contains(&index));
        let orphans = files.sidecars.into_iter().filter(|path| !indexes.contains(path));
        let mut leftovers: Vec<PathBuf> = files.unfinished;
        leftovers.extend(replaced.into_iter().map(|found| found.path));
        leftovers.extend(orphans);
        let (spares, last_id) = (files.spares, last_id.unwrap_or(0));
        Self { chain, leftovers, spares, is_newest_sealed, last_id }
    }
}

/// Whether `newer` was made to take the place of `older`, among others.
fn replaces(newer: &Header, older: &Header) -> bool {
    match newer.extent {
        Extent::Log => false,
        Extent::Rewritten { next_sequence, .. } => {
            newer.id > older.id
                && (newer.first_sequence..next_sequence).contains(&older.first_sequence)
        }
    }
}

/// Opens segment files and reads their headers; each fails for itself.
pub(super) fn candidates(
    open: &dyn Fn(&Path) -> io::Result<Arc<dyn DiskFile>>,
    paths: &[PathBuf],
    identity: Uuid,
) -> impl Iterator<Item = Result<Candidate, Error>> {
    paths.iter().map(move |path| {
        let file = open(path).at("cannot open", path)?;
        candidate(path, file, identity)
    })
}

fn candidate(path: &Path, file: Arc<dyn DiskFile>, identity: Uuid) -> Result<Candidate, Error> {
    let corrupt =
        |what: &str| Error::Corrupt { path: path.to_owned(), offset: 0, what: what.into() };
    if file.size().at("cannot measure", path)? < segment::HEADER_BYTES as u64 {
        return Err(corrupt("the file is too short for a segment"));
    }
    let page = segment::read_range(&file, path, 0, segment::HEADER_BYTES)?;
    let header = Header::decode(&page).ok_or_else(|| corrupt("the segment's header is damaged"))?;
    if header.identity != identity {
        return Err(corrupt("the segment belongs to another journal"));
    }
    if path.file_name().is_none_or(|name| name != header.file_name().as_str()) {
        return Err(corrupt("the file has the name of another segment"));
    }
    Ok(Candidate { path: path.to_owned(), file, header })
}

fn spare_id(path: &Path) -> Option<u64> {
    u64::from_str_radix(path.file_stem()?.to_str()?, 16).ok()
}
