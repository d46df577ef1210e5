//! What to run: plain data, already within the bounds that whoever accepted it holds. Nothing here
//! looks at the machine.

use std::{collections::BTreeMap, fmt, path::PathBuf, str::FromStr, time::Duration};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// One run of one task. Names its directory (`tasks/UUID/NUMBER`) and its cgroups (`UUID-NUMBER`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AttemptId {
    pub task: Uuid,
    pub number: u32,
}

/// Everything a runtime has to know about a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// The program and its arguments; no shell reads them. Never empty.
    pub argv: Vec<String>,
    /// All there is: nothing is inherited.
    pub env: BTreeMap<String, String>,
    /// Absolute, inside the root.
    pub workdir: PathBuf,
    pub user: User,
    /// Given to the command, which then sees the end of its input.
    pub stdin: Vec<u8>,
    pub root: Root,
    pub network: Network,
    pub limits: Limits,
    /// From the start; the command is stopped with its grace when it has passed.
    pub timeout: Option<Duration>,
    /// From TERM to KILL, when nobody says otherwise.
    pub grace: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    pub uid: u32,
    pub gid: u32,
}

/// What the command sees as `/`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Root {
    /// A skeleton with the host's programs bound in, read-only.
    HostView,
    /// A directory of [`Site::roots`](crate::runtime::Site::roots), by its name.
    Named { name: String },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    /// Only its own loopback.
    None,
    /// The host's, loopback services included.
    Host,
}

/// What the command may not exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Share of CPU time under contention, in thousandths of a core.
    pub cpu_weight_millis: u64,
    /// Never more than this, in thousandths of a core.
    pub cpu_quota_millis: Option<u64>,
    pub memory_bytes: u64,
    pub pids: u64,
    pub scratch_bytes: u64,
    pub scratch_medium: Medium,
}

/// Where scratch files lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Medium {
    /// Counts as the command's memory.
    Memory,
    /// In the attempt's directory; measured now and then.
    Disk,
}

/// Why a name is none of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the name of an attempt: a task's UUID, a dash, a number")]
pub struct NotAnAttempt;

// === impl AttemptId ===

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.task, self.number)
    }
}

/// Takes exactly what `Display` gives: two names of one attempt would be two attempts.
impl FromStr for AttemptId {
    type Err = NotAnAttempt;

    fn from_str(text: &str) -> Result<Self, NotAnAttempt> {
        let (task, number) = text.rsplit_once('-').ok_or(NotAnAttempt)?;
        let (Ok(task), Ok(number)) = (Uuid::try_parse(task), number.parse()) else {
            return Err(NotAnAttempt);
        };
        let id = Self { task, number };
        (id.to_string() == text).then_some(id).ok_or(NotAnAttempt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_and_its_attempt_stand_for_each_other() {
        let name = "01890a5d-ac96-774b-bcce-b302099a8057-12";
        let id: AttemptId = name.parse().unwrap();
        assert_eq!((id.number, id.to_string().as_str()), (12, name));
        for other in [
            "",
            "12",
            "01890a5d-ac96-774b-bcce-b302099a8057",
            "01890a5d-ac96-774b-bcce-b302099a8057-",
            "01890a5d-ac96-774b-bcce-b302099a8057-012",
            "01890A5D-ac96-774b-bcce-b302099a8057-12",
            "01890a5dac96774bbcceb302099a8057-12",
            "01890a5d-ac96-774b-bcce-b302099a8057--1",
        ] {
            assert_eq!(other.parse::<AttemptId>(), Err(NotAnAttempt), "{other}");
        }
    }
}
