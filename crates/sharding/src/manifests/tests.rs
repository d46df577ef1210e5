mod ring;
mod schema;
mod server;

use expect_test::{Expect, expect};

use super::*;

fn options() -> Options {
    Options {
        image: "registry.example/windlass:1".to_owned(),
        replicas: 2,
        home: "home".to_owned(),
    }
}

/// Objects, one line each: `Kind namespace/name`.
fn inventory(objects: &[Value]) -> String {
    let line = |object: &Value| {
        let metadata = &object["metadata"];
        let (kind, name) = (text(&object["kind"]), text(&metadata["name"]));
        match metadata.get("namespace") {
            Some(namespace) => format!("{kind} {}/{name}\n", text(namespace)),
            None => format!("{kind} {name}\n"),
        }
    };
    objects.iter().map(line).collect()
}

/// What roles allow, one line for each rule.
fn rights(objects: &[Value]) -> String {
    let mut lines = String::new();
    for role in objects {
        let name = text(&role["metadata"]["name"]);
        for rule in role["rules"].as_array().into_iter().flatten() {
            let words = |field: &str| {
                let words: Vec<&str> = rule[field].as_array().unwrap().iter().map(text).collect();
                words.join(" ")
            };
            let (group, resources, verbs) =
                (words("apiGroups"), words("resources"), words("verbs"));
            lines += &format!("{name}: {group}/{resources}: {verbs}\n");
        }
    }
    lines
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[track_caller]
fn check(actual: &str, expected: &Expect) {
    expected.assert_eq(actual);
}

fn find(kind: &str) -> Value {
    objects(&options()).into_iter().find(|object| object["kind"] == kind).unwrap()
}

#[test]
fn everything_comes_after_what_it_needs() {
    check(
        &inventory(&objects(&options())),
        &expect![[r#"
        CustomResourceDefinition rings.windlass.dev
        Namespace home
        ServiceAccount home/windlass-sharder
        ClusterRole windlass-sharder
        ClusterRole windlass-sharder-fence
        ClusterRole windlass-sharder-rings
        ClusterRole windlass-sharder-instance
        ClusterRoleBinding windlass-sharder
        ClusterRoleBinding windlass-sharder-fence
        ClusterRoleBinding windlass-sharder-rings
        Deployment home/windlass-sharder
        PodDisruptionBudget home/windlass-sharder
    "#]],
    );
}

#[test]
fn the_sharder_may_do_what_it_must_and_no_more() {
    check(
        &rights(&objects(&options())),
        &expect![[r#"
        windlass-sharder: windlass.dev/rings: get list watch update patch
        windlass-sharder: windlass.dev/rings/status: get update patch
        windlass-sharder: coordination.k8s.io/leases: get list watch create update patch delete
        windlass-sharder: /namespaces: get list watch
        windlass-sharder: events.k8s.io/events: create patch
        windlass-sharder-fence: admissionregistration.k8s.io/validatingadmissionpolicies: get list watch create update patch delete
        windlass-sharder-fence: admissionregistration.k8s.io/validatingadmissionpolicybindings: get list watch create update patch delete
        windlass-sharder-instance: coordination.k8s.io/leases: get create update patch
        windlass-sharder-instance: apps/statefulsets: get
    "#]],
    );
}

/// Applied again, a list of rules would take away what rings have added.
#[test]
fn the_role_that_rings_add_to_has_no_rules_of_its_own() {
    let objects = objects(&options());
    let role = objects.iter().find(|object| object.get("aggregationRule").is_some()).unwrap();
    assert!(role.get("rules").is_none());
}

#[test]
fn pods_have_no_privilege_and_know_their_namespace() {
    let deployment = find("Deployment");
    assert_eq!(deployment["spec"]["replicas"], 2);
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    let container = &pod["containers"][0];
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    assert_eq!(container["securityContext"]["allowPrivilegeEscalation"], false);
    assert_eq!(container["securityContext"]["capabilities"], json!({"drop": ["ALL"]}));
    assert_eq!(
        container["args"],
        json!(["sharder", "run", "--listen=0.0.0.0:9181", "--sharder-namespace=home"])
    );
    assert_eq!(container["env"], json!([{"name": "MIMALLOC_PURGE_DELAY", "value": "0"}]));
    let labels = &find("Namespace")["metadata"]["labels"];
    assert_eq!(labels["pod-security.kubernetes.io/enforce"], "restricted");
}

#[test]
fn options_that_make_no_sense_are_refused() {
    assert_eq!(options().validate(), Ok(()));
    let unnamed = Options { image: String::new(), ..options() };
    assert_eq!(unnamed.validate(), Err(Error::NoImage));
    for home in ["", "Home", "-home", "home-", "a.b", &"a".repeat(64)] {
        let options = Options { home: home.to_owned(), ..options() };
        assert_eq!(options.validate(), Err(Error::Namespace(home.to_owned())), "{home:?}");
    }
}
