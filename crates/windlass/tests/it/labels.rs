//! The labels service where no cluster answers: what `deploy/` holds is what the binary prints, and
//! `up` waits for an API server that may start later.

use std::{fs, path::Path, process::Command};

use rustix::process::Signal;

use super::running::{Running, get, up};

const WINDLASS: &str = env!("CARGO_BIN_EXE_windlass");

/// Nobody listens there: the port is reserved.
const KUBECONFIG: &str = r#"{
    "apiVersion": "v1", "kind": "Config", "current-context": "c", "users": [],
    "contexts": [{"name": "c", "context": {"cluster": "c", "user": ""}}],
    "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}]
}"#;

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

#[test]
fn alerts_are_rules_of_prometheus() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/kubernetes/labels");
    let text = fs::read_to_string(folder.join("prometheus-rules.yaml")).unwrap();
    let rules: serde_json::Value = serde_saphyr::from_str(&text).unwrap();
    let rules = rules["groups"][0]["rules"].as_array().unwrap();
    assert_eq!(rules.len(), 5);
    for rule in rules {
        for field in ["alert", "expr"] {
            assert!(rule[field].is_string(), "{field} of {rule}");
        }
    }
}

/// Commands that read, that take a lock, that write without one, and that look at Leases.
const ASKING: [&[&str]; 12] = [
    &["list"],
    &["show", "a"],
    &["diff", "a"],
    &["history", "a"],
    &["export"],
    &["restore", "a"],
    &["restore", "a", "--dry-run"],
    &["forget", "a"],
    &["forget", "a", "--force"],
    &["import"],
    &["uninstall"],
    &["uninstall", "--purge", "--dry-run"],
];

/// An export of one record.
const EXPORT: &str = r#"{
    "apiVersion": "v1", "kind": "List", "items": [{
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"},
        "data": {"labels_restored": "1", "rack": "r7"}
    }]
}"#;

#[test]
fn an_api_server_that_is_down_is_told_by_the_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let [kubeconfig, export] = ["kubeconfig", "export"].map(|name| folder.path().join(name));
    fs::write(&kubeconfig, KUBECONFIG).unwrap();
    fs::write(&export, EXPORT).unwrap();
    for arguments in ASKING {
        let mut command = Command::new(WINDLASS);
        command.arg("labels").args(arguments).arg("--kubeconfig").arg(&kubeconfig);
        if arguments == ["import"] {
            command.arg(&export);
        }
        let output = command.output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{arguments:?}: {words}");
        assert!(words.contains("hint: is the API server up?"), "{arguments:?}: {words}");
    }
}

/// The parser showed the lines around the fault as well.
#[test]
fn what_is_no_export_is_told_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let export = folder.path().join("export");
    for text in ["hello: 1", "[", "kind: List\nitems: 7\n"] {
        fs::write(&export, text).unwrap();
        let output = Command::new(WINDLASS).args(["labels", "import"]).arg(&export).output();
        let output = output.unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words}");
        let lines: Vec<_> = words.lines().collect();
        assert!(lines.len() == 2 && lines[1].starts_with("hint: "), "{words}");
    }
}

#[test]
fn up_serves_the_store_while_the_cluster_does_not_answer() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    fs::write(&kubeconfig, KUBECONFIG).unwrap();
    let mut command = up(&folder.path().join("data"), "127.0.0.1:0");
    command.arg("--kubeconfig").arg(&kubeconfig);
    for flag in ["--labels-listen", "--sharder-listen", "--autoscaler-listen"] {
        command.args([flag, "127.0.0.1:0"]);
    }
    let running = Running::spawn(&mut command);
    let stored = running.post("/v3/kv/put", r#"{"key":"YQ==","value":"Yg=="}"#);
    assert!(stored.contains("200 OK"), "{stored}");
    let probe = running.welcome.split_whitespace().find_map(|word| word.strip_suffix("/readyz"));
    let answer = get(probe.unwrap().strip_prefix("http://").unwrap(), "/readyz");
    assert!(answer.contains("503") && answer.contains("access"), "{answer}");
    let (status, last_words) = running.stop(Signal::TERM);
    assert!(status.success(), "{status}: {last_words}");
}
