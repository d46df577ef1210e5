//! Which hierarchies this machine has mounted, and where.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::Error;

const MOUNTINFO: &str = "/proc/self/mountinfo";

/// What limits and accounting need. Where v1 limits, each must be in a v1 hierarchy.
const REQUIRED_V1: [&str; 4] = ["cpu", "cpuacct", "memory", "pids"];

/// Mounted hierarchies.
///
/// | | `v1` | `unified` |
/// |---|---|---|
/// | v1 | all | none |
/// | hybrid | those that limit | for `cgroup.kill` |
/// | v2 | none | all |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    pub(super) v1: Vec<Hierarchy>,
    pub(super) unified: Option<PathBuf>,
}

/// One v1 hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hierarchy {
    pub mount: PathBuf,
    pub controllers: Vec<String>,
}

/// A line of `mountinfo`, as far as it matters here.
struct Mount<'a> {
    point: PathBuf,
    kind: &'a str,
    super_options: &'a str,
}

// === impl Layout ===

impl Layout {
    /// The layout of the mount namespace this process is in.
    pub fn detect() -> Result<Self, Error> {
        let text = fs::read_to_string(MOUNTINFO)
            .map_err(|source| Error::Read { path: MOUNTINFO.into(), source })?;
        Self::parse(&text)
    }

    /// The layout that the text of a `mountinfo` file describes.
    pub fn parse(mountinfo: &str) -> Result<Self, Error> {
        let mut layout = Self { v1: Vec::new(), unified: None };
        for mount in mountinfo.lines().filter_map(Mount::parse) {
            match mount.kind {
                "cgroup2" if layout.unified.is_none() => layout.unified = Some(mount.point),
                "cgroup" => layout.add(mount),
                _ => {}
            }
        }
        layout.check()
    }

    /// The mount point of the v1 hierarchy with this controller.
    pub fn hierarchy_of(&self, controller: &str) -> Option<&Hierarchy> {
        self.v1.iter().find(|hierarchy| hierarchy.has(controller))
    }

    /// Whether the v2 tree limits and counts.
    pub fn is_v2(&self) -> bool {
        self.v1.is_empty()
    }

    /// Adds a hierarchy unless it is one of init's, which control nothing, or was seen before: inside
    /// a container each may be mounted twice.
    fn add(&mut self, mount: Mount<'_>) {
        let controllers: Vec<String> = mount.controllers().map(str::to_owned).collect();
        let is_known = controllers.iter().any(|controller| self.hierarchy_of(controller).is_some());
        if !controllers.is_empty() && !is_known {
            self.v1.push(Hierarchy { mount: mount.point, controllers });
        }
    }

    fn check(self) -> Result<Self, Error> {
        if self.v1.is_empty() && self.unified.is_none() {
            return Err(Error::NotMounted);
        }
        let missing = |controller: &&'static str| self.hierarchy_of(controller).is_none();
        match REQUIRED_V1.into_iter().find(missing) {
            Some(controller) if !self.is_v2() => Err(Error::MissingController { controller }),
            _ => Ok(self),
        }
    }
}

// === impl Hierarchy ===

impl Hierarchy {
    pub fn has(&self, controller: &str) -> bool {
        self.controllers.iter().any(|each| each == controller)
    }
}

// === impl Mount ===

impl<'a> Mount<'a> {
    /// `36 35 98:0 /root /point options optional* - kind source super_options`
    fn parse(line: &'a str) -> Option<Self> {
        let (about, fs) = line.split_once(" - ")?;
        let point = unescape(about.split(' ').nth(4)?);
        let mut fs = fs.split(' ');
        Some(Self { point, kind: fs.next()?, super_options: fs.nth(1)? })
    }

    fn controllers(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        const NOT_CONTROLLERS: [&str; 7] =
            ["rw", "ro", "none", "noprefix", "clone_children", "xattr", "cpuset_v2_mode"];
        let options = self.super_options.split(',');
        options.filter(|option| !option.contains('=') && !NOT_CONTROLLERS.contains(option))
    }
}

/// Blanks and backslashes in mount points are written as `\` and three octal digits.
fn unescape(field: &str) -> PathBuf {
    use std::{ffi::OsString, os::unix::ffi::OsStringExt};

    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = match (first, tail) {
            (b'\\', [a, b, c, ..]) => {
                let digits = [*a, *b, *c];
                str::from_utf8(&digits).ok().and_then(|digits| u8::from_str_radix(digits, 8).ok())
            }
            _ => None,
        };
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &tail[3..] } else { tail };
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// A group's directory in a hierarchy mounted at `mount`. Group paths are absolute, so that they never
/// depend on the group of the process that asks.
pub(super) fn dir_in(mount: &Path, group: &Path) -> PathBuf {
    mount.join(group.strip_prefix("/").unwrap_or(group))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(mountinfo: &str, expected: &Expect) {
        let text = match Layout::parse(mountinfo) {
            Ok(layout) => layout.to_text(),
            Err(error) => format!("error: {error}\n"),
        };
        expected.assert_eq(&text);
    }

    impl Layout {
        fn to_text(&self) -> String {
            let v1 = self.v1.iter().map(|hierarchy| {
                format!("{} at {}\n", hierarchy.controllers.join("+"), hierarchy.mount.display())
            });
            let unified = self.unified.iter().map(|at| format!("unified at {}\n", at.display()));
            v1.chain(unified).collect()
        }
    }

    #[test]
    fn v1_with_controllers_mounted_together() {
        check(
            "22 27 0:21 / /proc rw,relatime - proc proc rw\n\
             31 23 0:28 / /sys/fs/cgroup rw shared:9 - tmpfs tmpfs rw,mode=755\n\
             32 31 0:29 / /sys/fs/cgroup/systemd rw shared:10 - cgroup cgroup rw,xattr,name=systemd\n\
             33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw shared:11 - cgroup cgroup rw,cpu,cpuacct\n\
             34 31 0:31 / /sys/fs/cgroup/memory rw shared:12 - cgroup cgroup rw,memory\n\
             35 31 0:32 / /sys/fs/cgroup/pids rw shared:13 - cgroup cgroup rw,pids\n",
            &expect![[r#"
                cpu+cpuacct at /sys/fs/cgroup/cpu,cpuacct
                memory at /sys/fs/cgroup/memory
                pids at /sys/fs/cgroup/pids
            "#]],
        );
    }

    #[test]
    fn hybrid_has_both() {
        check(
            "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n\
             33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct\n\
             35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
             39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n\
             40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd\n\
             41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n",
            &expect![[r#"
                cpu at /sys/fs/cgroup/cpu
                cpuacct at /sys/fs/cgroup/cpuacct
                memory at /sys/fs/cgroup/memory
                pids at /sys/fs/cgroup/pids
                unified at /sys/fs/cgroup/unified
            "#]],
        );
    }

    #[test]
    fn v2_is_one_tree() {
        check(
            "35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
            &expect![[r#"
                unified at /sys/fs/cgroup
            "#]],
        );
    }

    #[test]
    fn a_hierarchy_mounted_twice_counts_once() {
        check(
            "33 31 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
             34 31 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
             35 31 0:32 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
             99 31 0:31 /windlass/h/u-1 /elsewhere rw - cgroup cgroup rw,memory\n",
            &expect![[r#"
                cpu+cpuacct at /sys/fs/cgroup/cpu
                memory at /sys/fs/cgroup/memory
                pids at /sys/fs/cgroup/pids
            "#]],
        );
    }

    #[test]
    fn what_cannot_limit_is_refused() {
        let lone_cpu = "33 31 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n";
        check(
            lone_cpu,
            &expect![[r#"
                error: the control group controller `memory` is not available
            "#]],
        );
        check(
            "22 27 0:21 / /proc rw,relatime - proc proc rw\n",
            &expect![[r#"
                error: no control group hierarchy is mounted
            "#]],
        );
    }

    #[test]
    fn mount_points_are_unescaped() {
        check(
            "35 24 0:30 / /a\\040b\\134c rw - cgroup2 cgroup2 rw\n",
            &expect![[r#"
                unified at /a b\c
            "#]],
        );
    }
}
