//! Other programs that run containers from a bundle, and the root that all of them share.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::process::Command;

/// What every container runs.
pub(super) const COMMAND: &str = "/bin/true";

const NAMES: [&str; 2] = ["runc", "crun"];
/// Where distributions put programs of root.
const FOLDERS: [&str; 4] = ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"];

/// One of them, and its bundle.
#[derive(Debug)]
pub(super) struct Rival {
    name: String,
    program: PathBuf,
    bundle: PathBuf,
}

/// Those that this machine has.
pub(super) fn installed() -> Vec<PathBuf> {
    let find = |name: &&str| {
        FOLDERS.iter().map(|folder| Path::new(folder).join(name)).find(|path| path.is_file())
    };
    NAMES.iter().filter_map(find).collect()
}

/// Why each of the others is not measured. Debian's packages are called as the programs are.
pub(super) fn absent(installed: &[PathBuf]) -> Vec<String> {
    let is_absent = |name: &&&str| !installed.iter().any(|program| program.ends_with(name));
    let reason = |name: &&str| format!("{name}: it is not installed (apt-get install {name})");
    NAMES.iter().filter(is_absent).map(reason).collect()
}

/// A folder with `true` and the libraries it needs, and nothing else.
pub(super) fn make_root(root: &Path) -> Result<()> {
    let listed = std::process::Command::new("ldd").arg(COMMAND).output().context("run ldd")?;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let libraries = listed.split_whitespace().filter(|word| word.starts_with('/'));
    for file in libraries.chain([COMMAND]) {
        let copy = root.join(file.trim_start_matches('/'));
        let folder = copy.parent().context("a file lies in a folder")?;
        fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
        fs::copy(file, &copy).with_context(|| format!("copy {file}"))?;
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o755))?;
    }
    for folder in ["proc", "sys", "dev", "tmp", "etc", "run"] {
        fs::create_dir_all(root.join(folder)).context("make the root")?;
    }
    Ok(())
}

// === impl Rival ===

impl Rival {
    pub(super) fn new(program: &Path, bundles: &Path, root: &Path) -> Result<Self> {
        let name = program.file_name().context("a program has a name")?;
        let name = name.to_string_lossy().into_owned();
        let bundle = bundles.join(&name);
        fs::create_dir_all(&bundle).context("make the bundle")?;
        let config = serde_json::to_vec_pretty(&config(root))?;
        fs::write(bundle.join("config.json"), config).context("write the bundle")?;
        Ok(Self { name, program: program.to_owned(), bundle })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// One container, from nothing to nothing.
    pub(super) async fn run(&self, number: usize) -> Result<()> {
        let id = format!("windlass-bench-{}-{number}", std::process::id());
        let output = Command::new(&self.program)
            .args(["run", "--bundle"])
            .arg(&self.bundle)
            .arg(&id)
            .stdin(Stdio::null())
            .output()
            .await
            .with_context(|| format!("start {}", self.program.display()))?;
        let words = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{}: {}", output.status, words.trim());
        Ok(())
    }
}

/// As much isolation as ours, and the same limits.
fn config(root: &Path) -> Value {
    let namespaces = ["pid", "network", "ipc", "uts", "mount", "cgroup"];
    let namespaces: Vec<Value> = namespaces.iter().map(|kind| json!({ "type": kind })).collect();
    json!({
        "ociVersion": "1.0.2",
        "process": {
            "terminal": false,
            "user": { "uid": 65534, "gid": 65534 },
            "args": [COMMAND],
            "env": [],
            "cwd": "/",
            "capabilities": {},
            "noNewPrivileges": true,
        },
        "root": { "path": root, "readonly": true },
        "hostname": "bench",
        "mounts": [
            { "destination": "/proc", "type": "proc", "source": "proc" },
            {
                "destination": "/dev", "type": "tmpfs", "source": "tmpfs",
                "options": ["nosuid", "strictatime", "mode=755", "size=65536k"],
            },
            {
                "destination": "/dev/pts", "type": "devpts", "source": "devpts",
                "options": ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"],
            },
            {
                "destination": "/dev/shm", "type": "tmpfs", "source": "shm",
                "options": ["nosuid", "noexec", "nodev", "mode=1777", "size=1024k"],
            },
            {
                "destination": "/sys", "type": "sysfs", "source": "sysfs",
                "options": ["nosuid", "noexec", "nodev", "ro"],
            },
        ],
        "linux": {
            "namespaces": namespaces,
            "resources": {
                "memory": { "limit": 64 << 20, "swap": 64 << 20 },
                "cpu": { "shares": 102 },
                "pids": { "limit": 64 },
            },
            "maskedPaths": ["/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/firmware"],
            "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys"],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_not_there_is_named() {
        let told = |installed: &[&str]| {
            let installed: Vec<PathBuf> = installed.iter().map(PathBuf::from).collect();
            absent(&installed)
        };
        assert_eq!(told(&["/usr/sbin/runc", "/usr/bin/crun"]), [] as [String; 0]);
        let crun = "crun: it is not installed (apt-get install crun)";
        assert_eq!(told(&["/usr/sbin/runc"]), [crun]);
        assert_eq!(told(&[]).len(), 2);
    }
}
