//! Where `--record-inputs` goes: a file that is written beside the loop, and begun anew when it is large.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    thread::JoinHandle,
};

use autoscaler::record::{self, QUEUE_MAX};
use tokio::sync::mpsc;

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
    file: BufWriter<File>,
    written: u64,
}

// === impl Recorder ===

impl Recorder {
    /// Begins a file. It ends when everybody who records has gone.
    pub(super) fn start(
        path: &Path,
        config: &registry::Config,
    ) -> Result<(Self, autoscaler::Recorder), Failure> {
        let output = Output::create(path.to_owned(), record::header(config));
        let output = output.map_err(|error| failure(path, error))?;
        let (sender, receiver) = mpsc::channel(QUEUE_MAX);
        let thread = lifecycle::beside("record-inputs", move || output.write_all(receiver));
        let thread = thread.map_err(|error| failure(path, error))?;
        Ok((Self { thread, path: path.to_owned() }, sender))
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
    fn create(path: PathBuf, header: String) -> io::Result<Self> {
        let file = BufWriter::new(File::create(&path)?);
        let mut output = Self { path, header: header.clone(), file, written: 0 };
        output.line(&header)?;
        Ok(output)
    }

    fn write_all(mut self, mut lines: mpsc::Receiver<String>) -> io::Result<()> {
        while let Some(line) = lines.blocking_recv() {
            self.line(&line)?;
            self.file.flush()?;
            if self.written > FILE_BYTES_MAX {
                self = self.begin_anew()?;
            }
        }
        self.file.flush()
    }

    fn begin_anew(self) -> io::Result<Self> {
        drop(self.file);
        let mut aside = self.path.clone().into_os_string();
        aside.push(".");
        aside.push(SET_ASIDE);
        fs::rename(&self.path, &aside)?;
        Self::create(self.path, self.header)
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
