//! What `deploy/` holds for the labels service is what the binary prints.

use std::{fs, path::Path, process::Command};

const WINDLASS: &str = env!("CARGO_BIN_EXE_windlass");

fn printed(arguments: &[&str]) -> String {
    let output = Command::new(WINDLASS).args(["labels", "manifests"]).args(arguments).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_kustomization_holds_what_manifests_prints() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/kubernetes/labels");
    let held = fs::read_to_string(folder.join("labels.yaml")).unwrap();
    assert!(
        held == printed(&[]),
        "outdated: windlass labels manifests > deploy/kubernetes/labels/labels.yaml"
    );
}

#[test]
fn objects_are_the_same_in_yaml_and_json() {
    let yaml: Vec<serde_json::Value> = serde_saphyr::from_multiple(&printed(&[])).unwrap();
    let json: serde_json::Value = serde_json::from_str(&printed(&["-o", "json"])).unwrap();
    assert_eq!(json["items"], serde_json::Value::Array(yaml));
}
