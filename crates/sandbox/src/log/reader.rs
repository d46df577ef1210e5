//! Reads a log from an offset on, while it may be written, rotated and dropped. Waits for nothing.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    time::Duration,
};

use bytes::Bytes;

use super::{
    Content, Entry, Error, Streams, files,
    format::{Body, Decoded, FILE_HEADER_BYTES, RECORD_BYTES_MAX, RECORD_HEADER_BYTES, decode},
};

/// Read at once: the largest record fits twice.
const WINDOW_BYTES: usize = 2 * (RECORD_HEADER_BYTES + RECORD_BYTES_MAX);

/// A position in a log.
#[derive(Debug)]
pub struct Reader {
    dir: PathBuf,
    streams: Streams,
    /// Everything before it was delivered or is not wanted.
    wanted: u64,
    /// `None`: no file was found yet.
    place: Option<Place>,
    /// When the last record was written.
    time: Duration,
    is_ended: bool,
}

/// A position in one file.
#[derive(Debug)]
struct Place {
    number: u64,
    file: File,
    /// Of the next record, in the file.
    at: u64,
    /// Of the next record, in the log.
    offset: u64,
    /// Bytes of the file from `at` on, as far as they were read.
    window: Vec<u8>,
}

// === impl Reader ===

impl Reader {
    pub(super) fn new(dir: &Path, wanted: u64, streams: Streams) -> Self {
        Self {
            dir: dir.to_owned(),
            streams,
            wanted,
            place: None,
            time: Duration::ZERO,
            is_ended: false,
        }
    }

    /// Where it goes on.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.wanted
    }

    /// When what was read last was written.
    pub(super) fn time(&self) -> Duration {
        self.time
    }

    /// Whether the end was delivered.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// The next entry; `None` if there is none yet, or none any more.
    ///
    /// # Errors
    ///
    /// If a file cannot be read.
    pub fn next_entry(&mut self) -> Result<Option<Entry>, Error> {
        while !self.is_ended {
            if self.place.is_none() && !self.find_place()? {
                return Ok(None);
            }
            if let Some(gap) = self.gap_before_place() {
                return Ok(Some(gap));
            }
            match self.step()? {
                Step::Entry(entry) => return Ok(Some(entry)),
                Step::Unwanted => {}
                Step::NoMore if self.leave_file()? => {}
                Step::NoMore => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Opens the file in which the wanted offset lies, or the first one after it.
    fn find_place(&mut self) -> Result<bool, Error> {
        for number in files::list(&self.dir)?.into_iter().rev() {
            // A file without a header is not there yet; one that is gone was dropped.
            let Some((file, offset)) = files::open(&self.dir, number)? else { continue };
            self.place = Some(Place::new(number, file, offset));
            if offset <= self.wanted {
                break;
            }
        }
        Ok(self.place.is_some())
    }

    /// What was lost between what is wanted and what there is.
    fn gap_before_place(&mut self) -> Option<Entry> {
        let place = self.place.as_ref()?;
        let bytes = place.offset.checked_sub(self.wanted).filter(|bytes| *bytes > 0)?;
        let gap = Entry { offset: self.wanted, time: self.time, content: Content::Gap { bytes } };
        self.wanted = place.offset;
        Some(gap)
    }

    /// Takes one record of the present file.
    fn step(&mut self) -> Result<Step, Error> {
        let place = self.place.as_mut().expect("a place was found before");
        place.fill(&self.dir)?;
        let Decoded::Record(record, length) = decode(&place.window) else {
            return Ok(Step::NoMore);
        };
        let (offset, end) = (place.offset, place.offset + record.advance());
        let skipped = self.wanted.saturating_sub(offset);
        let content = match record.body {
            Body::Data(stream, bytes) if self.streams.has(stream) && self.wanted < end => {
                let skipped = usize::try_from(skipped).expect("a record fits the memory");
                Some(Content::Data { stream, bytes: Bytes::copy_from_slice(&bytes[skipped..]) })
            }
            Body::Gap(bytes) if self.wanted < end => Some(Content::Gap { bytes: bytes - skipped }),
            Body::End => Some(Content::End),
            Body::Data(..) | Body::Gap(_) => None,
        };
        self.time = record.time;
        self.is_ended = content == Some(Content::End);
        place.advance(length, end);
        let offset = offset.max(self.wanted);
        self.wanted = self.wanted.max(end);
        Ok(content.map_or(Step::Unwanted, |content| {
            Step::Entry(Entry { offset, time: self.time, content })
        }))
    }

    /// Goes on in the next file, if there is one: then nobody writes to this one any more.
    fn leave_file(&mut self) -> Result<bool, Error> {
        let number = self.place.as_ref().map(|place| place.number);
        let later = files::list(&self.dir)?.into_iter().filter(|later| Some(*later) > number);
        let Some(next) = first_readable(&self.dir, later)? else { return Ok(false) };
        // The last records may have come between the look at this file and the one at the directory.
        let place = self.place.as_mut().expect("a place was found before");
        place.fill(&self.dir)?;
        if !matches!(decode(&place.window), Decoded::Record(..)) {
            self.place = Some(next);
        }
        Ok(true)
    }
}

/// What one record was worth.
enum Step {
    Entry(Entry),
    Unwanted,
    NoMore,
}

fn first_readable(dir: &Path, numbers: impl Iterator<Item = u64>) -> Result<Option<Place>, Error> {
    for number in numbers {
        if let Some((file, offset)) = files::open(dir, number)? {
            return Ok(Some(Place::new(number, file, offset)));
        }
    }
    Ok(None)
}

// === impl Place ===

impl Place {
    fn new(number: u64, file: File, offset: u64) -> Self {
        Self { number, file, at: FILE_HEADER_BYTES as u64, offset, window: Vec::new() }
    }

    /// Reads on unless the window holds a whole record.
    fn fill(&mut self, dir: &Path) -> Result<(), Error> {
        if matches!(decode(&self.window), Decoded::Record(..)) {
            return Ok(());
        }
        // Anew from the record's beginning: what was half or wrong may have been cut and rewritten.
        self.window.resize(WINDOW_BYTES, 0);
        let mut filled = 0;
        while filled < WINDOW_BYTES {
            match self.file.read_at(&mut self.window[filled..], self.at + filled as u64) {
                Ok(0) => break,
                Ok(more) => filled += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => {
                    return Err(Error::Read { path: files::path(dir, self.number), source });
                }
            }
        }
        self.window.truncate(filled);
        Ok(())
    }

    fn advance(&mut self, length: usize, offset: u64) {
        self.window.drain(..length);
        self.at += length as u64;
        self.offset = offset;
    }
}
