//! The limits that the node's own cgroups set it, and with it all its tasks. Reads them; sets none.

use std::fs;
use std::path::{Path, PathBuf};

use crate::core::admission::Totals;
use crate::core::amounts::Amounts;

const OWN: &str = "/proc/self/cgroup";
const MOUNT: &str = "/sys/fs/cgroup";

/// One hierarchy that the process is in.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hierarchy {
    /// Empty: the unified one.
    controllers: Vec<String>,
    path: String,
}

/// The machine, cut down by what the cgroups allow. Where nothing can be read, nothing is limited.
pub(super) fn of_own_cgroup(host: Amounts) -> Totals {
    let own = fs::read_to_string(OWN).unwrap_or_default();
    let hierarchies: Vec<Hierarchy> = own.lines().filter_map(Hierarchy::parse).collect();
    let least = |read: fn(&Path) -> Option<u64>, controller: &str| {
        let concerned = hierarchies.iter().filter(|each| each.has(controller));
        let folders = concerned.flat_map(|each| each.folders(controller));
        folders.filter_map(|folder| read(&folder)).min()
    };
    Totals {
        host,
        cgroup_cpu_millis: least(cpu_millis, "cpu"),
        cgroup_memory_bytes: least(memory_bytes, "memory"),
        cgroup_pids: least(|folder| number(folder, "pids.max"), "pids"),
    }
}

// === impl Hierarchy ===

impl Hierarchy {
    /// A line such as `4:memory:/a/b`, or `0::/a/b` of the unified hierarchy.
    fn parse(line: &str) -> Option<Self> {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let controllers = controllers.split(',').filter(|name| !name.is_empty());
        Some(Self {
            controllers: controllers.map(ToOwned::to_owned).collect(),
            path: path.to_owned(),
        })
    }

    fn has(&self, controller: &str) -> bool {
        self.controllers.is_empty() || self.controllers.iter().any(|name| name == controller)
    }

    /// The cgroup and all above it: each of them sets a limit. Within a container the path may not be
    /// visible; then its root is the container's own cgroup.
    fn folders(&self, controller: &str) -> Vec<PathBuf> {
        let mut mount = PathBuf::from(MOUNT);
        if !self.controllers.is_empty() {
            mount.push(controller);
        }
        let relative = self.path.trim_start_matches('/');
        Path::new(relative).ancestors().map(|part| mount.join(part)).collect()
    }
}

fn memory_bytes(folder: &Path) -> Option<u64> {
    number(folder, "memory.max").or_else(|| number(folder, "memory.limit_in_bytes"))
}

fn cpu_millis(folder: &Path) -> Option<u64> {
    let unified = fs::read_to_string(folder.join("cpu.max")).ok();
    match unified {
        Some(text) => quota_millis(&text),
        None => {
            let (quota, period) = ("cpu.cfs_quota_us", "cpu.cfs_period_us");
            share_millis(number(folder, quota)?, number(folder, period)?)
        }
    }
}

/// `None` for `max`, and for the -1 by which version 1 says the same.
fn number(folder: &Path, file: &str) -> Option<u64> {
    fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok()
}

/// Of `50000 100000`: quota and period in microseconds.
fn quota_millis(text: &str) -> Option<u64> {
    let (quota, period) = text.trim().split_once(' ')?;
    share_millis(quota.parse().ok()?, period.parse().ok()?)
}

fn share_millis(quota: u64, period: u64) -> Option<u64> {
    quota.checked_mul(1000)?.checked_div(period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_name_their_folders() {
        let folders = |line: &str, controller: &str| {
            let hierarchy = Hierarchy::parse(line).unwrap();
            let folders = hierarchy.folders(controller).into_iter();
            let folders: Vec<String> = folders.map(|folder| folder.display().to_string()).collect();
            (hierarchy.has(controller), folders.join(" "))
        };
        let (has, found) = folders("0::/system.slice/windlass", "memory");
        assert!(has);
        expect_test::expect![
            "/sys/fs/cgroup/system.slice/windlass /sys/fs/cgroup/system.slice /sys/fs/cgroup/"
        ]
        .assert_eq(&found);
        let (has, found) = folders("4:cpu,cpuacct:/a", "cpu");
        assert!(has);
        expect_test::expect!["/sys/fs/cgroup/cpu/a /sys/fs/cgroup/cpu/"].assert_eq(&found);
        assert!(!folders("4:cpu,cpuacct:/a", "memory").0);
    }

    #[test]
    fn a_quota_is_a_share_of_its_period() {
        assert_eq!(quota_millis("150000 100000\n"), Some(1500));
        assert_eq!(quota_millis("max 100000\n"), None);
        assert_eq!(share_millis(5, 0), None);
    }
}
