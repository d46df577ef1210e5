//! The sharder's commands where no cluster answers: what `deploy/` holds is what the binary prints,
//! and a ring's manifests come from a file.

use std::{
    fs,
    io::Write,
    path::Path,
    process::{Command, Output, Stdio},
};

use serde_json::Value;

const WINDLASS: &str = env!("CARGO_BIN_EXE_windlass");

const RING: &str = "\
apiVersion: windlass.dev/v1alpha1
kind: Ring
metadata:
  name: websites
spec:
  resources:
  - group: example.com
    resource: sites
  fence: External
  instances:
    serviceAccounts: [shop/sites]
";

fn manifests(arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(WINDLASS);
    command.args(["sharder", "manifests"]).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn printed(arguments: &[&str], input: &str) -> String {
    let output = manifests(arguments, input);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_kustomization_holds_what_manifests_prints() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/kubernetes/sharder");
    let held = fs::read_to_string(folder.join("sharder.yaml")).unwrap();
    assert!(
        held == printed(&[], ""),
        "outdated: windlass sharder manifests > deploy/kubernetes/sharder/sharder.yaml"
    );
}

#[test]
fn objects_are_the_same_in_yaml_and_json() {
    let yaml: Vec<Value> = serde_saphyr::from_multiple(&printed(&[], "")).unwrap();
    let json: Value = serde_json::from_str(&printed(&["-o", "json"], "")).unwrap();
    assert_eq!(json["items"], Value::Array(yaml));
}

#[test]
fn what_a_ring_needs_is_made_from_its_file() {
    let list: Value = serde_json::from_str(&printed(&["-f", "-", "-o", "json"], RING)).unwrap();
    let kind = |object: &Value| object["kind"].as_str().unwrap().to_owned();
    let kinds: Vec<String> = list["items"].as_array().unwrap().iter().map(kind).collect();
    assert_eq!(
        kinds,
        [
            "ClusterRole",
            "ClusterRole",
            "ClusterRoleBinding",
            "RoleBinding",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
        ]
    );
}

#[test]
fn a_ring_that_is_wrong_is_refused_with_what_is_wrong() {
    for (from, to, said) in [
        ("[shop/sites]", "[]", "a fence needs instances.serviceAccounts"),
        ("name: websites", "name: web.sites", "RFC 1123 label"),
        ("fence:", "fenze:", "fenze"),
    ] {
        let output = manifests(&["-f", "-"], &RING.replace(from, to));
        let words = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words}");
        assert!(words.contains(said) && words.contains("hint: "), "{words}");
    }
}
