//! The autoscaler's commands where no cluster answers: what `deploy/` holds is what the binary prints.

use std::{fs, path::Path, process::Command};

use serde_json::Value;

const WINDLASS: &str = env!("CARGO_BIN_EXE_windlass");

fn printed(arguments: &[&str]) -> String {
    let output =
        Command::new(WINDLASS).args(["autoscaler", "manifests"]).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_kustomization_holds_what_manifests_prints() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/kubernetes/autoscaler");
    let held = fs::read_to_string(folder.join("autoscaler.yaml")).unwrap();
    assert!(
        held == printed(&[]),
        "outdated: windlass autoscaler manifests > deploy/kubernetes/autoscaler/autoscaler.yaml"
    );
}

#[test]
fn objects_are_the_same_in_yaml_and_json() {
    let yaml: Vec<Value> = serde_saphyr::from_multiple(&printed(&[])).unwrap();
    let json: Value = serde_json::from_str(&printed(&["-o", "json"])).unwrap();
    assert_eq!(json["items"], Value::Array(yaml));
}
