//! The v2 paths over a directory of plain files: what is written where, and what is made of what is
//! read. That a kernel agrees is shown by the tests that run containers.

use std::time::Duration;

use tempfile::TempDir;

use super::*;
use crate::{Limits, Medium, Usage, cgroup::Account};

const NAME: &str = "01890a5d-ac96-774b-bcce-b302099a8057-1";

/// A v2 tree of plain files, with the groups that a kernel would have made files in.
struct Plain {
    mount: TempDir,
}

// === impl Plain ===

impl Plain {
    fn new() -> Self {
        let plain = Self { mount: tempfile::tempdir().unwrap() };
        for group in ["", "windlass", "windlass/a", "windlass/b"] {
            plain.put(group, "cgroup.controllers", "cpuset cpu io memory pids\n");
            plain.put(group, "cgroup.subtree_control", "");
        }
        plain
    }

    fn tree(&self, host: &str) -> Tree {
        let mount = self.mount.path().display();
        let layout =
            Layout::parse(&format!("35 24 0:30 / {mount} rw - cgroup2 cgroup2 rw\n")).unwrap();
        Tree::new(layout, PathBuf::from("/"), host)
    }

    fn put(&self, group: &str, file: &str, content: &str) {
        let dir = self.mount.path().join(group);
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join(file), content).unwrap();
    }

    fn get(&self, group: &str, file: &str) -> String {
        fs::read_to_string(self.mount.path().join(group).join(file)).unwrap()
    }
}

#[test]
fn limits_are_written_and_use_is_read() {
    let plain = Plain::new();
    let tree = plain.tree("a");
    let group = tree.group(NAME);
    tree.create(&group).unwrap();
    let leaf = format!("windlass/a/{NAME}");
    for file in ["cpu.weight", "cpu.max", "memory.max", "memory.oom.group", "pids.max"] {
        plain.put(&leaf, file, "");
    }
    group
        .limit(&Limits {
            cpu_weight_millis: 500,
            cpu_quota_millis: Some(2000),
            memory_bytes: 8 << 20,
            pids: 12,
            scratch_bytes: 1,
            scratch_medium: Medium::Memory,
        })
        .unwrap();
    assert_eq!(plain.get(&leaf, "cpu.weight"), "50");
    assert_eq!(plain.get(&leaf, "cpu.max"), "200000 100000");
    assert_eq!(plain.get(&leaf, "memory.max"), "8388608");
    assert_eq!(plain.get(&leaf, "memory.oom.group"), "1");
    assert_eq!(plain.get(&leaf, "pids.max"), "12");

    plain.put(&leaf, "memory.events", "low 0\nmax 7\noom 1\noom_kill 1\n");
    plain.put(&leaf, "memory.peak", "8388608\n");
    plain.put(&leaf, "cpu.stat", "usage_usec 1500\nuser_usec 1000\n");
    let usage = Usage { peak_memory_bytes: 8 << 20, cpu: Duration::from_micros(1500) };
    assert_eq!(group.account().unwrap(), Account { usage, oom_kills: 1 });
}

/// Of a delegated group the daemon takes its share otherwise.
#[test]
fn outside_a_delegated_group_all_tasks_together_weigh_less_than_a_process() {
    let plain = Plain::new();
    plain.put("windlass", "cpu.weight", "");
    let tree = plain.tree("a");
    let leaf = plain.mount.path().join("windlass/a").join(NAME);
    tree.create_parents(&leaf).unwrap();
    assert_eq!(plain.get("windlass", "cpu.weight"), "50");
    assert!(!plain.mount.path().join("windlass/cpu.shares").exists(), "it is of v1");

    plain.put("windlass", "cpu.weight", "100");
    plain.put("windlass", "cpu.shares", "1024");
    Tree { base: PathBuf::from("/windlass"), ..tree }.create_parents(&leaf).unwrap();
    assert_eq!(plain.get("windlass", "cpu.weight"), "100");
}

#[test]
fn a_missing_limit_is_an_error_unless_there_is_nothing_to_limit() {
    let plain = Plain::new();
    let tree = plain.tree("a");
    let group = tree.group(NAME);
    tree.create(&group).unwrap();
    let limits = Limits {
        cpu_weight_millis: 100,
        cpu_quota_millis: None,
        memory_bytes: 8 << 20,
        pids: 12,
        scratch_bytes: 1,
        scratch_medium: Medium::Memory,
    };
    let leaf = format!("windlass/a/{NAME}");
    for file in ["cpu.weight", "memory.max", "memory.oom.group"] {
        plain.put(&leaf, file, "");
    }
    let error = group.limit(&limits).unwrap_err();
    assert!(error.to_string().contains("pids.max"), "{error}");
    plain.put(&leaf, "pids.max", "");
    group.limit(&limits).unwrap();
}

#[test]
fn a_kernel_without_a_peak_still_counts() {
    let plain = Plain::new();
    let group = plain.tree("a").group(NAME);
    let leaf = format!("windlass/a/{NAME}");
    plain.put(&leaf, "memory.events", "oom_kill 0\n");
    plain.put(&leaf, "cpu.stat", "usage_usec 7\n");
    assert_eq!(group.account().unwrap().usage.peak_memory_bytes, 0);
    plain.put(&leaf, "memory.peak", "max\n");
    assert!(matches!(group.account(), Err(Error::Unexpected { .. })));
}

#[test]
fn the_group_is_killed_whole_and_empty_when_the_kernel_says_so() {
    let plain = Plain::new();
    let group = plain.tree("a").group(NAME);
    assert!(group.is_empty().unwrap(), "a group that is not there has nobody");
    let leaf = format!("windlass/a/{NAME}");
    plain.put(&leaf, "cgroup.kill", "");
    plain.put(&leaf, "cgroup.events", "populated 1\nfrozen 0\n");
    assert!(!group.is_empty().unwrap());
    group.kill().unwrap();
    assert_eq!(plain.get(&leaf, "cgroup.kill"), "1");
    plain.put(&leaf, "cgroup.events", "populated 0\nfrozen 0\n");
    assert!(group.is_empty().unwrap());
}

#[test]
fn an_old_kernel_freezes_kills_and_thaws() {
    let plain = Plain::new();
    let group = plain.tree("a").group(NAME);
    let leaf = format!("windlass/a/{NAME}");
    plain.put(&leaf, "cgroup.freeze", "0");
    plain.put(&leaf, "cgroup.events", "populated 1\nfrozen 1\n");
    // A process of another namespace has no number here.
    plain.put(&leaf, "cgroup.procs", "0\n");
    group.kill().unwrap();
    assert_eq!(plain.get(&leaf, "cgroup.freeze"), "0", "thawed, or nobody would ever die");
}

#[test]
fn a_host_sees_its_own_groups_alone() {
    let plain = Plain::new();
    let (a, b) = (plain.tree("a"), plain.tree("b"));
    a.create(&a.group(NAME)).unwrap();
    assert_eq!(a.names().unwrap(), BTreeSet::from([NAME.to_owned()]));
    assert_eq!(b.names().unwrap(), BTreeSet::new());
    b.group(NAME).remove().unwrap();
    assert_eq!(a.names().unwrap().len(), 1);
    a.group(NAME).remove().unwrap();
    assert_eq!(a.names().unwrap(), BTreeSet::new());
}

#[test]
fn controllers_are_handed_down_from_the_top() {
    let plain = Plain::new();
    let dir = plain.mount.path();
    hand_down(dir).unwrap();
    assert_eq!(plain.get("", "cgroup.subtree_control"), "+cpu +memory +pids");
    plain.put("", "cgroup.controllers", "cpu pids\n");
    let error = hand_down(dir).unwrap_err();
    assert!(matches!(error, Error::MissingController { controller: "memory" }), "{error}");
}

#[test]
fn a_shared_parent_stays_for_others() {
    let mount = tempfile::tempdir().unwrap();
    let text = ["cpu,cpuacct", "memory", "pids"].map(|controllers| {
        let at = mount.path().join(controllers);
        fs::create_dir(&at).unwrap();
        format!("33 31 0:30 / {} rw - cgroup cgroup rw,{controllers}\n", at.display())
    });
    let layout = Layout::parse(&text.concat()).unwrap();
    let [a, b] = ["a", "b"].map(|host| Tree::new(layout.clone(), PathBuf::from("/"), host));
    a.create(&a.group(NAME)).unwrap();
    b.create(&b.group(NAME)).unwrap();
    a.retire().unwrap();
    assert_eq!(a.names().unwrap().len(), 1, "a tree with a group in it stays");
    a.group(NAME).remove().unwrap();
    a.retire().unwrap();
    assert!(!mount.path().join("memory/windlass/a").exists());
    assert_eq!(b.names().unwrap().len(), 1);
}
