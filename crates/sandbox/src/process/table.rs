//! The processes of the machine, as `/proc` shows them.

use std::{fs, io};

use rustix::process::Pid;

use crate::places::unless_missing;

/// One process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) pid: Pid,
    /// `None`: the kernel.
    pub(crate) parent: Option<Pid>,
    pub(crate) session: Option<Pid>,
    /// In ticks since boot.
    pub(crate) started: u64,
    /// Not a zombie: only those can still do something.
    pub(crate) is_alive: bool,
}

/// All processes there are. One that comes or goes meanwhile may be missing.
pub(crate) fn rows() -> io::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let pid = name.to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        if let Some(pid) = pid {
            rows.extend(row(pid)?);
        }
    }
    Ok(rows)
}

/// One process; `None` if it is gone.
pub(crate) fn row(pid: Pid) -> io::Result<Option<Row>> {
    let stat = unless_missing(fs::read(format!("/proc/{}/stat", pid.as_raw_pid())));
    match stat {
        Ok(stat) => Ok(stat.and_then(|stat| parse(pid, &stat))),
        // It ended between the opening and the reading.
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The name, in brackets, may hold anything, brackets and spaces too; all that counts follows it.
fn parse(pid: Pid, stat: &[u8]) -> Option<Row> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let fields = std::str::from_utf8(&stat[name_end + 1..]).ok()?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    let pid_at = |index: usize| Some(Pid::from_raw(fields.get(index)?.parse().ok()?));
    Some(Row {
        pid,
        is_alive: !matches!(*fields.first()?, "Z" | "X"),
        parent: pid_at(1)?,
        session: pid_at(3)?,
        started: fields.get(19)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use rustix::process::{getpid, getppid};

    use super::*;

    #[test]
    fn this_process_is_in_the_table() {
        let rows = rows().unwrap();
        let own = rows.iter().find(|row| row.pid == getpid()).unwrap();
        // Its session is not asked for: in a container it may be led from outside, and has no number.
        assert_eq!(own.parent, getppid());
        assert!(own.is_alive && own.started > 0, "{own:?}");
        assert_eq!(row(getpid()).unwrap(), Some(*own));
    }

    #[test]
    fn names_may_hold_anything() {
        let pid = Pid::from_raw(7).unwrap();
        let rest = "S 1 7 5 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 4242 0";
        for name in ["sh", "a b", ") S 2 3 (", "\u{fffd}"] {
            let stat = format!("7 ({name}) {rest}");
            let row = parse(pid, stat.as_bytes()).unwrap();
            assert_eq!((row.parent, row.session), (Pid::from_raw(1), Pid::from_raw(5)), "{name}");
            assert_eq!((row.started, row.is_alive), (4242, true), "{name}");
        }
        assert_eq!(parse(pid, b"7 (sh"), None);
    }
}
