//! `windlass version`, and `--version` as etcd prints it.

use etcd_api::version::{SERVER, STORAGE};

use crate::{
    cli::{Output, VersionArgs},
    report::{self, Outcome},
};

const WINDLASS: &str = env!("CARGO_PKG_VERSION");

pub(crate) fn run(arguments: &VersionArgs) -> Outcome {
    match arguments.output {
        Output::Table => report::data(&format!("windlass {WINDLASS} (etcd API {SERVER})")),
        Output::Json => {
            let version =
                serde_json::json!({"windlass": WINDLASS, "etcd_api": SERVER, "storage": STORAGE});
            report::data(&version.to_string())
        }
    }
}

/// etcd's lines, since scripts cut them apart. The architecture bears Go's name for it.
pub(crate) fn run_as_etcd() -> Outcome {
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        arch => arch,
    };
    let os = std::env::consts::OS;
    report::data(&format!(
        "etcd Version: {SERVER}\n\
         Git SHA: windlass-{WINDLASS}\n\
         Go Version: none (windlass {WINDLASS})\n\
         Go OS/Arch: {os}/{arch}"
    ))
}
