//! Where `--record-inputs` goes: a file that is written beside the loop, and begun anew when it is large,
//! with a line that says where everything stands.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    thread::JoinHandle,
};

use autoscaler::{
    Options,
    record::{self, Lines, Recorded},
};

use crate::{
    lifecycle,
    report::{Exit, Failure},
};

/// A larger file is set aside, in the place of the one before.
const FILE_BYTES_MAX: u64 = 256 << 20;

const SET_ASIDE: &str = "old";

/// The thread that writes.
pub(super) struct Recorder {
    thread: JoinHandle<io::Result<()>>,
    path: PathBuf,
}

struct Output {
    path: PathBuf,
    header: String,
    bytes_max: u64,
    file: BufWriter<File>,
    written: u64,
}

// === impl Recorder ===

impl Recorder {
    /// Begins a file. It ends when everybody who records has gone.
    pub(super) fn start(
        path: &Path,
        options: &Options,
    ) -> Result<(Self, autoscaler::Recorder), Failure> {
        let output = Output::create(path.to_owned(), record::header(options), FILE_BYTES_MAX);
        let output = output.map_err(|error| failure(path, error))?;
        let (recorder, lines) = record::channel();
        let thread = lifecycle::beside("record-inputs", move || output.write_and_tell(lines));
        let thread = thread.map_err(|error| failure(path, error))?;
        Ok((Self { thread, path: path.to_owned() }, recorder))
    }

    /// Waits for the last line.
    pub(super) fn finish(self) -> Result<(), Failure> {
        let ended =
            self.thread.join().unwrap_or_else(|_panic| Err(io::Error::other("it panicked")));
        ended.map_err(|error| failure(&self.path, error))
    }
}

// === impl Output ===

impl Output {
    fn create(path: PathBuf, header: String, bytes_max: u64) -> io::Result<Self> {
        let file = BufWriter::new(File::create(&path)?);
        let mut output = Self { path, header: header.clone(), bytes_max, file, written: 0 };
        output.line(&header)?;
        Ok(output)
    }

    /// The loop goes on without a record, so whoever wants one is told when there is none, and again
    /// when the process ends.
    fn write_and_tell(self, lines: Lines) -> io::Result<()> {
        let path = self.path.clone();
        self.write_all(lines).inspect_err(|error| {
            let path = path.display();
            tracing::error!(%path, %error, "nothing is recorded from now on");
        })
    }

    fn write_all(mut self, mut lines: Lines) -> io::Result<()> {
        while let Some(line) = lines.recv() {
            self = self.write(&line)?;
            if self.is_full() {
                lines.want_start();
            }
        }
        self.file.flush()
    }

    /// A new file begins only with a line from which somebody can go on who has nothing but this file.
    fn write(self, line: &Recorded) -> io::Result<Self> {
        let mut output = if self.is_full() && line.is_start { self.begin_anew()? } else { self };
        output.line(&line.text)?;
        output.file.flush()?;
        Ok(output)
    }

    fn is_full(&self) -> bool {
        self.written > self.bytes_max
    }

    fn begin_anew(self) -> io::Result<Self> {
        drop(self.file);
        let mut aside = self.path.clone().into_os_string();
        aside.push(".");
        aside.push(SET_ASIDE);
        fs::rename(&self.path, &aside)?;
        Self::create(self.path, self.header, self.bytes_max)
    }

    fn line(&mut self, line: &str) -> io::Result<()> {
        self.written += u64::try_from(line.len()).unwrap_or(u64::MAX) + 1;
        writeln!(self.file, "{line}")
    }
}

fn failure(path: &Path, error: io::Error) -> Failure {
    let error = anyhow::Error::new(error).context(format!("cannot record to {}", path.display()));
    Failure::new(Exit::No, error).with_hint("check the path after --record-inputs, and the disk")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_file_is_set_aside_at_a_line_that_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record");
        let mut output = Output::create(path.clone(), "head".to_owned(), 12).unwrap();
        for (text, is_start) in [("start 1", true), ("goes on", false), ("start 2", true)] {
            output = output.write(&Recorded { text: text.to_owned(), is_start }).unwrap();
        }
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        assert_eq!(read(&folder.path().join("record.old")), "head\nstart 1\ngoes on\n");
        assert_eq!(read(&path), "head\nstart 2\n");
    }
}
