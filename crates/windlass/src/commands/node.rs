//! `windlass node`: a task node, with a store of its own or beside others at a shared one.

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
};

use clap::CommandFactory;
use sandbox::Kind;

use super::{own_store::OwnStore, serve};
use crate::{
    cli::{
        Cli,
        logs::{LogFormat, LogLevel},
        tasks::NodeArgs,
    },
    config::node::{Error, Facts, Node, StoreChoice, file},
    lifecycle::{self, Parts, Ready, StartedNode, TaskNode},
    logging,
    report::{Failure, Outcome},
};

/// Of the names of all variables that are ours.
const VARIABLE_PREFIX: &str = "WINDLASS_";

/// Each part keeps its data in a folder of its own inside the data folder.
pub(super) const STORE_FOLDER: &str = "store";
/// A store that serves its own process alone.
const STORE_SOCKET: &str = "store.sock";

/// Of the whole machine, for root.
const RUNTIME_DIR: &str = "/run/windlass";
const DATA_DIR: &str = "/var/lib/windlass";
/// Below a user's own folders.
const OWN_FOLDER: &str = "windlass";

pub(crate) fn run(arguments: NodeArgs) -> Outcome {
    let arguments = with_file(arguments)?;
    let level = arguments.log_level.unwrap_or(LogLevel::Info);
    let format = arguments.log_format.unwrap_or(LogFormat::Json);
    let node = Node::of(arguments, &facts())?;
    check_roots(&node)?;
    logging::to_stderr(level.into(), format.into())?;
    for warning in node.warnings.iter().chain(&unknown_variables()) {
        tracing::warn!("{warning}");
    }
    let (name, runtime) = (node.name.clone(), node.kind.as_str());
    tracing::info!(version = env!("CARGO_PKG_VERSION"), name, runtime, "starting the task node");
    lifecycle::serve(parts(node)?, |ready| {
        tell_addresses(ready);
        serve::tell_systemd()
    })?;
    tracing::info!("stopped");
    Ok(())
}

/// A folder that is not there would fail every task that is given to this node for it, and one that is not
/// used would have it run on other files.
fn check_roots(node: &Node) -> Result<(), Error> {
    match node.roots.values().find(|path| !path.is_dir()) {
        Some(path) => Err(Error::NoRootfs { path: path.clone() }),
        None if node.kind == Kind::Process && !node.roots.is_empty() => Err(Error::RootfsOfProcess),
        None => Ok(()),
    }
}

fn tell_addresses(ready: &Ready) {
    for (_, address) in ready.store().into_iter().flat_map(store::Service::addresses) {
        tracing::info!(%address, "serving the store");
    }
    for address in ready.node().into_iter().flat_map(StartedNode::addresses) {
        tracing::info!(%address, "serving the API of tasks");
    }
    tracing::info!("ready for tasks");
}

fn parts(node: Node) -> Result<Parts, Failure> {
    match node.store.clone() {
        StoreChoice::Shared { endpoints } => {
            Ok(Parts { node: Some(TaskNode { node, endpoints }), ..Parts::default() })
        }
        StoreChoice::Own { listen } => {
            let socket = node.data_dir.join(STORE_SOCKET);
            // The names in a certificate are those by which others reach the port.
            let has_socket = listen.is_none() || node.identity.is_some();
            let own = OwnStore {
                data_dir: &node.data_dir.join(STORE_FOLDER),
                port: listen,
                socket: has_socket.then_some(socket.as_path()),
                identity: node.identity.as_ref(),
            };
            let store = own.serve()?;
            let store = Some((store.journal, store.options));
            let node = Some(TaskNode { node, endpoints: Vec::new() });
            Ok(Parts { store, node, ..Parts::default() })
        }
    }
}

fn with_file(arguments: NodeArgs) -> Result<NodeArgs, Error> {
    let Some(path) = arguments.config.clone() else { return Ok(arguments) };
    let text = fs::read_to_string(&path)
        .map_err(|source| Error::ReadFile { path: path.clone(), source })?;
    file::below(arguments, &path, &text)
}

/// A variable that nothing reads is a setting lost. Tasks and other programs have some of their own, so
/// that it is no error.
fn unknown_variables() -> Vec<String> {
    let known = known_variables(&Cli::command());
    let set = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    set.filter(|name| name.starts_with(VARIABLE_PREFIX) && !known.contains(name))
        .map(|name| format!("nothing reads the variable {name}"))
        .collect()
}

fn known_variables(command: &clap::Command) -> BTreeSet<String> {
    let own = command.get_arguments().filter_map(|argument| argument.get_env()?.to_str());
    let of_others = command.get_subcommands().flat_map(known_variables);
    own.map(str::to_owned).chain(of_others).collect()
}

/// What is true of this machine and of who starts the node.
pub(super) fn facts() -> Facts {
    let is_root = rustix::process::geteuid().is_root();
    Facts {
        is_root,
        host_name: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        runtime_dir: if is_root { Some(RUNTIME_DIR.into()) } else { own_runtime_dir() },
        data_dir: if is_root { Some(DATA_DIR.into()) } else { own_data_dir() },
    }
}

/// Where nodes of this machine have their sockets: the user's own, then that of root.
pub(super) fn runtime_dirs() -> impl Iterator<Item = PathBuf> {
    own_runtime_dir().into_iter().chain([PathBuf::from(RUNTIME_DIR)])
}

fn own_runtime_dir() -> Option<PathBuf> {
    absolute("XDG_RUNTIME_DIR").map(|dir| dir.join(OWN_FOLDER))
}

/// Where the XDG base directory specification wants the data of a user.
pub(super) fn own_data_dir() -> Option<PathBuf> {
    let home = || absolute("HOME").map(|home| home.join(".local/share"));
    absolute("XDG_DATA_HOME").or_else(home).map(|data| data.join(OWN_FOLDER))
}

fn absolute(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).map(PathBuf::from).filter(|path| Path::is_absolute(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::node::file::KEYS;

    #[test]
    fn every_key_of_a_file_is_a_flag_and_a_variable() {
        let cli = Cli::command();
        let node = cli.find_subcommand("node").expect("there is such a command");
        let flags: BTreeSet<&str> = node.get_arguments().filter_map(clap::Arg::get_long).collect();
        let keys: BTreeSet<&str> = KEYS.into_iter().chain(["config"]).collect();
        assert_eq!(flags, keys);
        let variables = known_variables(node);
        for key in KEYS {
            let variable = format!("{VARIABLE_PREFIX}{}", key.replace('-', "_").to_uppercase());
            assert!(variables.contains(&variable), "{variable}");
        }
    }
}
