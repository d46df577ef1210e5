//! A node's configuration file: TOML whose keys are the names of the flags.
//!
//! ```toml
//! name = "node1"
//! listen = "10.0.0.5:8080"
//! cacert = "/etc/windlass/ca.crt"
//! ```

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

use clap::ValueEnum;
use serde::Deserialize;
use toml::de::DeTable;

use super::Error;
use crate::{
    cli::{
        duration,
        tasks::{IdentityArgs, NodeArgs, RuntimeArg},
    },
    config::{size, suggest},
};

/// All of them.
pub(crate) const KEYS: [&str; 24] = [
    "name",
    "data-dir",
    "listen",
    "advertise",
    "socket",
    "store",
    "store-listen",
    "insecure",
    "cacert",
    "cert",
    "key",
    "runtime",
    "rootfs",
    "host-view",
    "allow-net-host",
    "allow-host-root",
    "lease-ttl",
    "max-queued",
    "max-message",
    "max-waiters",
    "max-watchers",
    "max-log-readers",
    "log-level",
    "log-format",
];

/// What a file can say. Durations and sizes are written as for the flags.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct File {
    name: Option<String>,
    data_dir: Option<PathBuf>,
    listen: Option<SocketAddr>,
    advertise: Option<String>,
    socket: Option<PathBuf>,
    store: Vec<String>,
    store_listen: Option<SocketAddr>,
    insecure: bool,
    cacert: Option<PathBuf>,
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
    runtime: Option<RuntimeArg>,
    rootfs: Vec<String>,
    host_view: Vec<PathBuf>,
    allow_net_host: bool,
    allow_host_root: bool,
    lease_ttl: Option<String>,
    max_queued: Option<usize>,
    max_message: Option<String>,
    max_waiters: Option<usize>,
    max_watchers: Option<usize>,
    max_log_readers: Option<usize>,
    log_level: Option<String>,
    log_format: Option<String>,
}

/// What was typed, and what the file says where nothing was typed; `path` is only for naming it.
pub(crate) fn below(arguments: NodeArgs, path: &Path, text: &str) -> Result<NodeArgs, Error> {
    check_keys(path, text)?;
    let file: File = toml::from_str(text).map_err(|error| unparsable(path, text, &error))?;
    file.below(arguments, path)
}

fn check_keys(path: &Path, text: &str) -> Result<(), Error> {
    let table = DeTable::parse(text).map_err(|error| unparsable(path, text, &error))?;
    let mut keys: Vec<_> = table.get_ref().keys().collect();
    keys.sort_by_key(|key| key.span().start);
    match keys.into_iter().find(|key| !KEYS.contains(&&**key.get_ref())) {
        None => Ok(()),
        Some(unknown) => Err(Error::UnknownKey {
            path: path.to_owned(),
            line: line_of(text, unknown.span().start),
            key: unknown.get_ref().to_string(),
            suggestion: suggest::closest(unknown.get_ref(), KEYS),
        }),
    }
}

fn unparsable(path: &Path, text: &str, error: &toml::de::Error) -> Error {
    Error::ParseFile {
        path: path.to_owned(),
        line: line_of(text, error.span().map_or(0, |span| span.start)),
        message: error.message().to_owned(),
    }
}

/// From 1, as editors count.
fn line_of(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

// === impl File ===

impl File {
    fn below(self, typed: NodeArgs, path: &Path) -> Result<NodeArgs, Error> {
        let level = |text: &str| ValueEnum::from_str(text, true);
        let format = |text: &str| ValueEnum::from_str(text, true);
        let is_store_typed = !typed.store.is_empty() || typed.store_listen.is_some();
        let identity = IdentityArgs {
            cacert: typed.identity.cacert.or(self.cacert),
            cert: typed.identity.cert.or(self.cert),
            key: typed.identity.key.or(self.key),
        };
        Ok(NodeArgs {
            config: typed.config,
            name: typed.name.or(self.name),
            data_dir: typed.data_dir.or(self.data_dir),
            listen: typed.listen.or(self.listen),
            advertise: typed.advertise.or(self.advertise),
            socket: typed.socket.or(self.socket),
            // One of the two excludes the other, wherever it was said.
            store: if is_store_typed { typed.store } else { self.store },
            store_listen: if is_store_typed { typed.store_listen } else { self.store_listen },
            insecure: typed.insecure || self.insecure,
            identity,
            runtime: typed.runtime.or(self.runtime),
            rootfs: or(typed.rootfs, self.rootfs),
            host_view: or(typed.host_view, self.host_view),
            allow_net_host: typed.allow_net_host || self.allow_net_host,
            allow_host_root: typed.allow_host_root || self.allow_host_root,
            lease_ttl: typed.lease_ttl.or(read(
                path,
                "lease-ttl",
                self.lease_ttl,
                duration::parse,
            )?),
            max_queued: typed.max_queued.or(self.max_queued),
            max_message: typed.max_message.or(read(
                path,
                "max-message",
                self.max_message,
                size::parse,
            )?),
            max_waiters: typed.max_waiters.or(self.max_waiters),
            max_watchers: typed.max_watchers.or(self.max_watchers),
            max_log_readers: typed.max_log_readers.or(self.max_log_readers),
            log_level: typed.log_level.or(read(path, "log-level", self.log_level, level)?),
            log_format: typed.log_format.or(read(path, "log-format", self.log_format, format)?),
        })
    }
}

fn or<T>(typed: Vec<T>, file: Vec<T>) -> Vec<T> {
    if typed.is_empty() { file } else { typed }
}

fn read<T>(
    path: &Path,
    key: &'static str,
    text: Option<String>,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, Error> {
    let Some(value) = text else { return Ok(None) };
    match parse(&value) {
        Ok(meant) => Ok(Some(meant)),
        Err(expected) => Err(Error::BadValue { path: path.to_owned(), key, value, expected }),
    }
}
