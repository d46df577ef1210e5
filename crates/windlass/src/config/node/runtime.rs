//! Which runtime is meant: containers where they can be had, and nothing less without a word.

use sandbox::Kind;

use super::{Error, Facts};
use crate::cli::tasks::{NodeArgs, RuntimeArg};

const NOT_ENFORCED: &str = "tasks run as plain processes: no isolation, and no limits are enforced";

/// The runtime, and what a person should know about it.
pub(super) fn choose(arguments: &NodeArgs, facts: &Facts) -> Result<(Kind, Vec<String>), Error> {
    let addresses = [arguments.listen, arguments.store_listen];
    let is_local = addresses.iter().flatten().all(|address| address.ip().is_loopback());
    let process = (Kind::Process, vec![NOT_ENFORCED.to_owned()]);
    match arguments.runtime.unwrap_or_default() {
        RuntimeArg::Native if facts.is_root => Ok((Kind::Native, Vec::new())),
        RuntimeArg::Native => Err(Error::NotRoot),
        RuntimeArg::Process => Ok(process),
        RuntimeArg::Auto if facts.is_root => Ok((Kind::Native, Vec::new())),
        RuntimeArg::Auto if is_local => Ok(process),
        RuntimeArg::Auto => Err(Error::PublicProcess),
    }
}
