//! Where a service manager lets us make groups.
//!
//! systemd owns the v2 tree of its machine. A service with `Delegate=yes` owns the subtree below its own
//! group, marked by an extended attribute; anything made elsewhere may be swept away. A v2 group that
//! holds groups may hold no process, so the daemon moves to a leaf beside the attempts.

use std::path::{Path, PathBuf};

/// The leaf of the daemon and its shims, inside a delegated group.
pub(super) const DAEMON_LEAF: &str = "windlass.daemon";

/// Newer and older systemd.
const MARKS: [&str; 2] = ["trusted.delegate", "user.delegate"];

/// The v2 group of the process whose `/proc/PID/cgroup` this is.
pub(super) fn own_group(proc_cgroup: &str) -> Option<&Path> {
    proc_cgroup.lines().find_map(|line| line.strip_prefix("0::")).map(Path::new)
}

/// The group below which ours may lie: the delegated one that `own` is, or is the daemon's leaf of,
/// else the root.
pub(super) fn base(own: &Path, is_delegated: impl Fn(&Path) -> bool) -> PathBuf {
    let candidate = match own.parent() {
        Some(parent) if own.ends_with(DAEMON_LEAF) => parent,
        _ => own,
    };
    let is_ours = candidate != Path::new("/") && is_delegated(candidate);
    if is_ours { candidate.to_owned() } else { PathBuf::from("/") }
}

/// Whether systemd has marked this directory as delegated.
pub(super) fn is_marked(dir: &Path) -> bool {
    MARKS.iter().any(|mark| {
        let mut value = [0; 1];
        matches!(rustix::fs::getxattr(dir, *mark, &mut value), Ok(1) if value == *b"1")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVICE: &str = "/system.slice/windlass.service";

    fn check(own: &str, delegated: &str, expected: &str) {
        let found = base(Path::new(own), |path| path == Path::new(delegated));
        assert_eq!(found, Path::new(expected), "own {own}, delegated {delegated}");
    }

    #[test]
    fn attempts_lie_below_what_is_delegated() {
        check(SERVICE, SERVICE, SERVICE);
        check(&format!("{SERVICE}/{DAEMON_LEAF}"), SERVICE, SERVICE);
    }

    #[test]
    fn without_delegation_they_lie_at_the_root() {
        check("/user.slice/session-1.scope", SERVICE, "/");
        check(&format!("{SERVICE}/{DAEMON_LEAF}"), "/other", "/");
        check("/", "/", "/");
    }

    #[test]
    fn the_own_group_is_the_one_without_a_hierarchy() {
        let hybrid = "4:memory:/a\n1:name=systemd:/b\n0::/c/d\n";
        assert_eq!(own_group(hybrid), Some(Path::new("/c/d")));
        assert_eq!(own_group("4:memory:/a\n"), None);
    }
}
