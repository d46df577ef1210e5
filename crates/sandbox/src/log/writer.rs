//! Appends to a log. Only the shim does, and in its place the daemon once the shim is gone.
//!
//! Nothing here fails for want of space: bytes that the disk refuses are counted and become a gap as
//! soon as it takes records again.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, IoSlice, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    Error, FILE_BYTES_MAX, FILES_MAX, Stream, Volume, files,
    format::{
        Body, Decoded, FILE_HEADER_BYTES, RECORD_BYTES_MAX, RECORD_HEADER_BYTES, Record, decode,
        encode_file_header,
    },
};

/// Taken back where nothing else makes room for the end: more than any file system gives out at once.
const ROOM_BYTES: usize = 128 << 10;

/// How long files get and how many there are; tests use small ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) file_bytes_max: u64,
    pub(crate) files_max: usize,
}

/// The one who writes a log.
#[derive(Debug)]
pub(crate) struct Writer {
    dir: PathBuf,
    sizes: Sizes,
    number: u64,
    file: File,
    /// Bytes of the file that are whole records.
    length: u64,
    /// Whether something lies behind them that could not be cut off: the next record goes elsewhere.
    is_spoilt: bool,
    /// Logical offset of the next record.
    offset: u64,
    /// Bytes refused since the last record.
    lost: u64,
    volume: Volume,
}

// === impl Sizes ===

impl Default for Sizes {
    fn default() -> Self {
        Self { file_bytes_max: FILE_BYTES_MAX, files_max: FILES_MAX }
    }
}

// === impl Writer ===

impl Writer {
    /// Begins the log of an attempt, in its directory.
    pub(crate) fn create(dir: &Path, sizes: Sizes) -> Result<Self, Error> {
        let file = create_file(dir, 0, 0)?;
        Ok(Self::at(dir, sizes, 0, file))
    }

    /// Goes on where a writer that died stopped: the torn end is cut at the last good record. `None` if
    /// there is nothing to go on with, or the log has its end already.
    pub(crate) fn resume(dir: &Path, sizes: Sizes) -> Result<Option<Self>, Error> {
        let Some(number) = files::list(dir)?.pop() else { return Ok(None) };
        let path = files::path(dir, number);
        let on_read = |source| Error::Read { path: path.clone(), source };
        let bytes = fs::read(&path).map_err(on_read)?;
        let Some((_, start)) = files::open(dir, number)? else {
            return Self::resume_before(dir, sizes, number).map(Some);
        };
        let Survey { length, offset, is_ended, .. } = Survey::of(&bytes, start);
        if is_ended {
            return Ok(None);
        }
        let on_cut = |source| Error::Cut { path: path.clone(), source };
        let file = OpenOptions::new().append(true).open(&path).map_err(on_cut)?;
        file.set_len(length).map_err(on_cut)?;
        Ok(Some(Self { length, offset, ..Self::at(dir, sizes, number, file) }))
    }

    /// The newest file has no header: whoever made it died on the way. It is made anew, to begin
    /// where the one before it ends.
    fn resume_before(dir: &Path, sizes: Sizes, number: u64) -> Result<Self, Error> {
        let path = files::path(dir, number);
        fs::remove_file(&path).map_err(|source| Error::Cut { path, source })?;
        let before = match number.checked_sub(1).map(|before| Self::resume_at(dir, before)) {
            Some(offset) => offset?,
            None => 0,
        };
        let file = create_file(dir, number, before)?;
        Ok(Self { offset: before, ..Self::at(dir, sizes, number, file) })
    }

    /// Where the records of a finished file end.
    fn resume_at(dir: &Path, number: u64) -> Result<u64, Error> {
        let path = files::path(dir, number);
        let bytes = fs::read(&path).map_err(|source| Error::Read { path, source })?;
        let start = files::open(dir, number)?.map_or(0, |(_, start)| start);
        Ok(Survey::of(&bytes, start).offset)
    }

    fn at(dir: &Path, sizes: Sizes, number: u64, file: File) -> Self {
        Self {
            dir: dir.to_owned(),
            sizes,
            number,
            file,
            length: FILE_HEADER_BYTES as u64,
            is_spoilt: false,
            offset: 0,
            lost: 0,
            volume: Volume::default(),
        }
    }

    /// Appends what a stream gave.
    pub(crate) fn append(&mut self, stream: Stream, bytes: &[u8], time: Duration) {
        for piece in bytes.chunks(RECORD_BYTES_MAX) {
            self.volume.bytes += piece.len() as u64;
            let taken =
                self.tell_loss(time) && self.put(Record { time, body: Body::Data(stream, piece) });
            if !taken {
                self.lost += piece.len() as u64;
                self.volume.dropped_bytes += piece.len() as u64;
            }
        }
    }

    /// Marks the end. If there is no room even for that, output makes it, the oldest or else the last:
    /// a log that tells where it ends, and what is missing, is worth more.
    pub(crate) fn end(mut self, time: Duration) -> Volume {
        let mut may_take_back = true;
        while !(self.tell_loss(time) && self.put(Record { time, body: Body::End })) {
            if self.drop_oldest() {
                continue;
            }
            if !std::mem::take(&mut may_take_back) || self.take_back().is_err() {
                break;
            }
        }
        self.volume
    }

    /// Records what was refused since the last record, if anything was.
    fn tell_loss(&mut self, time: Duration) -> bool {
        if self.lost == 0 {
            return true;
        }
        let is_told = self.put(Record { time, body: Body::Gap(self.lost) });
        if is_told {
            self.lost = 0;
        }
        is_told
    }

    /// Writes one record, whole or not at all.
    fn put(&mut self, record: Record<'_>) -> bool {
        let (header, payload) = record.encode();
        let bytes = (RECORD_HEADER_BYTES + payload.bytes().len()) as u64;
        let is_full = self.length + bytes > self.sizes.file_bytes_max;
        if (is_full || self.is_spoilt) && !self.rotate() {
            return false;
        }
        let mut pieces = [IoSlice::new(&header), IoSlice::new(payload.bytes())];
        if write_all_vectored(&self.file, &mut pieces).is_err() {
            // What a reader takes for the torn end would hide every record after it.
            self.is_spoilt = self.file.set_len(self.length).is_err();
            return false;
        }
        self.length += bytes;
        self.offset += record.advance();
        true
    }

    /// Goes on in the next file. Room is made first, so that a full disk does not keep the oldest.
    fn rotate(&mut self) -> bool {
        while files::list(&self.dir).is_ok_and(|numbers| numbers.len() >= self.sizes.files_max) {
            if !self.drop_oldest() {
                return false;
            }
        }
        let Ok(file) = create_file(&self.dir, self.number + 1, self.offset) else { return false };
        self.number += 1;
        self.file = file;
        self.length = FILE_HEADER_BYTES as u64;
        self.is_spoilt = false;
        true
    }

    /// Gives the last records of the file back to the disk; what they held is lost with the rest.
    fn take_back(&mut self) -> Result<(), Error> {
        let path = files::path(&self.dir, self.number);
        let bytes = fs::read(&path).map_err(|source| Error::Read { path: path.clone(), source })?;
        let start = files::open(&self.dir, self.number)?.map_or(0, |(_, start)| start);
        let all = Survey::of(&bytes, start);
        let kept = Survey::of(&bytes[..bytes.len().saturating_sub(ROOM_BYTES)], start);
        self.file.set_len(kept.length).map_err(|source| Error::Cut { path, source })?;
        self.lost += self.offset - kept.offset;
        self.volume.dropped_bytes += all.data_bytes - kept.data_bytes;
        (self.length, self.offset) = (kept.length, kept.offset);
        Ok(())
    }

    /// Whether there was one to drop; never the one that is written.
    fn drop_oldest(&self) -> bool {
        let Ok(numbers) = files::list(&self.dir) else { return false };
        let oldest = numbers.into_iter().find(|number| *number < self.number);
        oldest.is_some_and(|number| fs::remove_file(files::path(&self.dir, number)).is_ok())
    }
}

#[cfg(test)]
impl Writer {
    /// From now on the disk takes nothing, neither bytes nor files.
    pub(super) fn fill_disk(&mut self) {
        self.file = OpenOptions::new().append(true).open("/dev/full").expect("a full disk");
        self.dir = PathBuf::from("/dev/full");
    }

    pub(super) fn free_disk(&mut self, dir: &Path) {
        self.dir = dir.to_owned();
    }
}

/// Makes a file with its header. What is left of one that failed would stand in the way of the next.
fn create_file(dir: &Path, number: u64, start: u64) -> Result<File, Error> {
    let path = files::path(dir, number);
    let create = || {
        let mut file = OpenOptions::new().append(true).create_new(true).open(&path)?;
        if let Err(error) = file.write_all(&encode_file_header(start)) {
            fs::remove_file(&path)?;
            return Err(error);
        }
        Ok(file)
    };
    create().map_err(|source| Error::Create { path: path.clone(), source })
}

/// Whole or an error; nothing is told about how much was written before it.
fn write_all_vectored(mut file: &File, pieces: &mut [IoSlice<'_>]) -> io::Result<()> {
    let mut pieces = pieces;
    while !pieces.is_empty() {
        match file.write_vectored(pieces) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut pieces, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The good records at the beginning of a file.
#[derive(Clone, Copy, Debug, Default)]
struct Survey {
    /// They end here, in bytes.
    length: u64,
    /// They end here, in the log.
    offset: u64,
    /// What the command wrote of it.
    data_bytes: u64,
    is_ended: bool,
}

// === impl Survey ===

impl Survey {
    /// Of a file that begins at this offset; looks no further than `bytes` reach.
    fn of(bytes: &[u8], start: u64) -> Self {
        let mut at = FILE_HEADER_BYTES;
        let mut survey = Self { offset: start, ..Self::default() };
        while let Decoded::Record(record, length) = decode(bytes.get(at..).unwrap_or_default()) {
            at += length;
            survey.offset += record.advance();
            if let Body::Data(_, data) = record.body {
                survey.data_bytes += data.len() as u64;
            }
            survey.is_ended = record.body == Body::End;
        }
        Self { length: at as u64, ..survey }
    }
}
