//! Sets up logs in the shape etcd's have (zap's JSON or console lines), so that tools which read
//! those read these. Chooses level, format and outputs; never logs anything itself.

mod zap;

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::PathBuf,
    sync::Arc,
};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::{
    filter::Targets,
    fmt::{MakeWriter, format::JsonFields},
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

use crate::{
    config::{Error, Settings},
    report::{Exit, Failure, Outcome},
};
pub(crate) use zap::Format;

/// Crates whose logs follow the chosen level. Libraries beneath them speak from warnings up.
const OWN_TARGETS: [&str; 11] = [
    "autoscaler",
    "journal",
    "kubekit",
    "labels",
    "mvcc",
    "sandbox",
    "sharding",
    "simcloud",
    "store",
    "tasks",
    "windlass",
];

/// How to log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) level: LevelFilter,
    pub(crate) format: Format,
    pub(crate) outputs: Vec<Output>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    Stderr,
    Stdout,
    File(PathBuf),
}

#[derive(Debug, thiserror::Error)]
#[error("cannot open log file {}", path.display())]
pub(crate) struct OpenFile {
    path: PathBuf,
    source: io::Error,
}

/// Writes each line to every output.
#[derive(Clone)]
struct Outputs(Arc<[Sink]>);

enum Sink {
    Stderr,
    Stdout,
    /// Opened for appending, so that one write is one whole line.
    File(File),
}

/// Starts logging to stderr alone.
pub(crate) fn to_stderr(level: LevelFilter, format: Format) -> Outcome {
    let options = Options { level, format, outputs: vec![Output::Stderr] };
    options.start().map_err(|error| Failure::new(Exit::No, error))
}

// === impl Options ===

impl Options {
    pub(crate) fn of(settings: &Settings) -> Result<Self, Error> {
        let outputs = settings.list("log-outputs").into_iter().map(Output::named).collect();
        Ok(Self { level: level(settings), format: format(settings), outputs })
    }

    /// Starts logging, once for the whole process.
    pub(crate) fn start(&self) -> Result<(), OpenFile> {
        let sinks = self.outputs.iter().map(Output::open).collect::<Result<Vec<_>, _>>()?;
        let lines = tracing_subscriber::fmt::layer()
            .fmt_fields(JsonFields::new())
            .event_format(self.format)
            .with_writer(Outputs(sinks.into()));
        let filter = Targets::new()
            .with_default(self.level.min(LevelFilter::WARN))
            .with_targets(OWN_TARGETS.map(|target| (target, self.level)));
        tracing_subscriber::registry().with(lines).with(filter).init();
        Ok(())
    }
}

/// zap's levels above error do not exist here: whatever is that bad ends the process.
fn level(settings: &Settings) -> LevelFilter {
    match settings.text("log-level") {
        "debug" => LevelFilter::DEBUG,
        "info" => LevelFilter::INFO,
        "warn" => LevelFilter::WARN,
        _ => LevelFilter::ERROR,
    }
}

fn format(settings: &Settings) -> Format {
    match settings.text("log-format") {
        "console" => Format::Console,
        _ => Format::Json,
    }
}

// === impl Output ===

impl Output {
    /// Under systemd, stderr is the journal.
    fn named(name: &str) -> Self {
        match name {
            "default" | "stderr" | "systemd/journal" => Self::Stderr,
            "stdout" => Self::Stdout,
            path => Self::File(path.into()),
        }
    }

    fn open(&self) -> Result<Sink, OpenFile> {
        match self {
            Self::Stderr => Ok(Sink::Stderr),
            Self::Stdout => Ok(Sink::Stdout),
            Self::File(path) => {
                let opened = OpenOptions::new().create(true).append(true).open(path);
                opened.map(Sink::File).map_err(|source| OpenFile { path: path.clone(), source })
            }
        }
    }
}

// === impl Outputs ===

impl<'a> MakeWriter<'a> for Outputs {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Write for Outputs {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        for sink in self.0.iter() {
            match sink {
                Sink::Stderr => io::stderr().write_all(line)?,
                Sink::Stdout => io::stdout().write_all(line)?,
                Sink::File(file) => (&*file).write_all(line)?,
            }
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
