//! One cluster at a time, kept for the cases that want the same kind.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use e2e::ignite::{Guard, Ignite, Settings};
use e2e::tasks::lacks_root;
use ignite_client::Credentials;
use journal_ignite::{OwnFiles, TlsFiles};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// A folder of jars, which is no program: it is looked for here.
const LIBRARY: &str = "TEST_ASSET_IGNITE3_LIB";

/// What kind of cluster a case runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Single,
    /// One node that wants user, password and certificates. Its Raft log is not synced.
    Guarded,
    Three,
    /// Three, each in a network of its own.
    Apart,
}

pub(crate) type Play = Arc<dyn Fn(&mut Stage) -> Result<()> + Send + Sync>;

#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) play: Play,
    /// Whether it is left out unless tests run at length, or it is asked for by `--ignored`.
    pub(crate) is_long: bool,
}

/// Where a case plays.
pub(crate) struct Stage {
    kind: Kind,
    pub(crate) runtime: tokio::runtime::Handle,
    pub(crate) ignite: Ignite,
    /// Makes names of schemas that nobody used.
    schemas: u32,
    _folder: TempDir,
}

pub(crate) struct Theatre {
    runtime: Runtime,
    stage: Option<Stage>,
}

// === impl Case ===

impl Case {
    pub(crate) fn new(name: &str, kind: Kind, play: fn(&mut Stage) -> Result<()>) -> Self {
        Self { name: name.to_owned(), kind, play: Arc::new(play), is_long: false }
    }

    pub(crate) fn at_length(self) -> Self {
        Self { is_long: true, ..self }
    }
}

// === impl Kind ===

impl Kind {
    fn settings(self) -> Settings {
        Settings {
            nodes: if self.is_three() { 3 } else { 1 },
            is_synced: self != Self::Guarded,
            is_guarded: self == Self::Guarded,
            is_quick: !self.is_three(),
            is_apart: self == Self::Apart,
        }
    }

    fn is_three(self) -> bool {
        matches!(self, Self::Three | Self::Apart)
    }
}

// === impl Stage ===

impl Stage {
    pub(crate) fn schema(&mut self) -> String {
        self.schemas += 1;
        format!("W{}", self.schemas)
    }

    pub(crate) fn client(&self) -> ignite_client::Options {
        ignite_client::Options::new(self.ignite.addresses())
    }

    /// Of a journal with tables of its own; a single node can have no three replicas.
    pub(crate) fn journal(&mut self) -> journal_ignite::Options {
        let mut options = journal_ignite::Options::new(self.client(), self.ignite.rest());
        if let Some(Guard { authority, certificate, key, .. }) = self.ignite.guard() {
            let own = OwnFiles { certificate: certificate.clone(), key: key.clone() };
            options.tls = Some(TlsFiles {
                authorities: authority.clone(),
                own: Some(own),
                server_name: None,
            });
            options.client.credentials = Some(user("ignite"));
            options.rest = self.ignite.rest_tls();
        }
        options.schema = self.schema();
        if !self.kind.is_three() {
            options.replicas = 1;
            options.is_unsafe_allowed = true;
        }
        options
    }
}

/// The user that Ignite has by default, with any password.
pub(crate) fn user(password: &str) -> Credentials {
    Credentials { user: "ignite".to_owned(), password: password.to_owned() }
}

// === impl Theatre ===

impl Theatre {
    pub(crate) fn new(runtime: Runtime) -> Self {
        Self { runtime, stage: None }
    }

    /// Plays a case; why it was skipped, if it was.
    pub(crate) fn play(&mut self, case: &Case) -> Result<Option<String>> {
        let Some(library) = std::env::var_os(LIBRARY).map(PathBuf::from) else {
            let reason = format!("{LIBRARY} is not set (cargo xtask provision)");
            ensure!(!is_ci(), "{reason}");
            return Ok(Some(reason));
        };
        if let Some(reason) = lacks_root().filter(|_| case.kind == Kind::Apart) {
            ensure!(!is_ci(), "{}: {reason}", case.name);
            return Ok(Some(reason.to_owned()));
        }
        ensure!(library.is_dir(), "{LIBRARY} names no folder: {}", library.display());
        if self.stage.as_ref().is_none_or(|stage| stage.kind != case.kind) {
            // The nodes of two clusters would not fit.
            drop(self.stage.take());
            let folder = tempfile::tempdir().context("make a folder for the nodes")?;
            let settings = case.kind.settings();
            let started = Ignite::start(&library, folder.path(), &settings);
            let ignite = self.runtime.block_on(started).context("start Ignite")?;
            self.stage = Some(Stage {
                kind: case.kind,
                runtime: self.runtime.handle().clone(),
                ignite,
                schemas: 0,
                _folder: folder,
            });
        }
        let stage = self.stage.as_mut().context("there is a stage since the lines above")?;
        (case.play)(stage).map(|()| None)
    }
}

fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}
