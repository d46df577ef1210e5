//! The container's description, in the words of the OCI runtime specification.
//!
//! It says little: mounts, limits and networks are made before, by us. What is left to the container
//! runtime is what needs the namespace of processes, the user and the capabilities.

use std::path::Path;

use rustix::process::{Resource, getrlimit};
use serde_json::{Value, json};

use crate::{AttemptId, Root, Spec};

/// The first version with all that is used here.
const OCI_VERSION: &str = "1.0.2";

/// Kernel internals that tell of the host, or of its other tenants.
const MASKED: [&str; 7] = [
    "/proc/acpi",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
];

const READ_ONLY: [&str; 5] =
    ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/// Open files: what programs expect by default, and what they may ask for.
const OPEN_FILES_SOFT_MAX: u64 = 1024;
const OPEN_FILES_HARD_MAX: u64 = 524_288;

/// Describes the container of `spec` with the prepared `root`.
pub(super) fn describe(id: AttemptId, spec: &Spec, root: &Path, cgroup: &Path) -> Value {
    json!({
        "ociVersion": OCI_VERSION,
        "root": { "path": root },
        "hostname": id.to_string(),
        "process": process(spec),
        "mounts": [{
            "destination": "/proc",
            "type": "proc",
            "source": "proc",
            "options": ["nosuid", "nodev", "noexec"],
        }],
        "linux": {
            "cgroupsPath": cgroup,
            // The network namespace is the shim's. The mounts are taken over from its own namespace, so
            // that the root of the new one can be exchanged and the host's is out of reach.
            "namespaces": [
                { "type": "pid" },
                { "type": "ipc" },
                { "type": "uts" },
                { "type": "cgroup" },
                { "type": "mount" },
            ],
            "rootfsPropagation": "private",
            "maskedPaths": MASKED,
            "readonlyPaths": READ_ONLY,
        },
    })
}

fn process(spec: &Spec) -> Value {
    let capabilities = capabilities(spec);
    // Never more than the shim itself may have: not every root may raise a limit.
    let open_files = getrlimit(Resource::Nofile).maximum.unwrap_or(OPEN_FILES_HARD_MAX);
    json!({
        "user": { "uid": spec.user.uid, "gid": spec.user.gid, "umask": 0o022 },
        // The command itself is run by init, which brings its words with it.
        "args": ["init"],
        "cwd": spec.workdir,
        "noNewPrivileges": true,
        "capabilities": {
            "bounding": capabilities,
            "effective": capabilities,
            "permitted": capabilities,
            "inheritable": [],
            "ambient": [],
        },
        "rlimits": [
            // A core would go wherever the host's pattern says.
            { "type": "RLIMIT_CORE", "soft": 0, "hard": 0 },
            {
                "type": "RLIMIT_NOFILE",
                "soft": open_files.min(OPEN_FILES_SOFT_MAX),
                "hard": open_files.min(OPEN_FILES_HARD_MAX),
            },
        ],
    })
}

/// None, but for root in a root of its own: it may end its processes, whatever user they became, and
/// listen where servers do.
fn capabilities(spec: &Spec) -> &'static [&'static str] {
    match spec.root {
        Root::Named { .. } if spec.user.uid == 0 => &["CAP_KILL", "CAP_NET_BIND_SERVICE"],
        _ => &[],
    }
}
