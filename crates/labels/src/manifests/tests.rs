use expect_test::{Expect, expect};

use super::*;

fn options() -> Options {
    Options {
        image: "registry.example/windlass:1".to_owned(),
        replicas: 2,
        admin_groups: vec!["wheel".to_owned(), "quo\"ted".to_owned()],
        home: "home".to_owned(),
        stores: Namespaces {
            transactions: "queue".to_owned(),
            metadata: "records".to_owned(),
            checkpoints: "points".to_owned(),
        },
    }
}

/// All objects, one line each: `Kind namespace/name`.
fn inventory() -> String {
    let line = |object: &Value| {
        let metadata = &object["metadata"];
        let (kind, name) = (text(&object["kind"]), text(&metadata["name"]));
        match metadata.get("namespace") {
            Some(namespace) => format!("{kind} {}/{name}\n", text(namespace)),
            None => format!("{kind} {name}\n"),
        }
    };
    objects(&options()).iter().map(line).collect()
}

/// What an account may do, one line for each rule of its roles.
fn rights(account: Account) -> String {
    let mut lines = String::new();
    for role in objects(&options()) {
        let is_of_account = role["metadata"]["name"] == account.name();
        let Some(rules) = role["rules"].as_array().filter(|_| is_of_account) else { continue };
        let place = role["metadata"]["namespace"].as_str().unwrap_or("everywhere");
        for rule in rules {
            let verbs: Vec<&str> = rule["verbs"].as_array().unwrap().iter().map(text).collect();
            let (group, resource) = (text(&rule["apiGroups"][0]), text(&rule["resources"][0]));
            lines += &format!("{place}: {group}/{resource} {}\n", verbs.join(" "));
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

fn find(kind: &str, name: &str) -> Value {
    let is_it = |object: &Value| object["kind"] == kind && object["metadata"]["name"] == name;
    objects(&options()).into_iter().find(is_it).unwrap()
}

#[test]
fn everything_comes_after_what_it_needs() {
    check(
        &inventory(),
        &expect![[r#"
            Namespace home
            Namespace queue
            Namespace records
            Namespace points
            ServiceAccount home/windlass-labels-watcher
            ServiceAccount home/windlass-labels-processor
            ClusterRole windlass-labels-watcher
            ClusterRoleBinding windlass-labels-watcher
            Role queue/windlass-labels-watcher
            RoleBinding queue/windlass-labels-watcher
            Role records/windlass-labels-watcher
            RoleBinding records/windlass-labels-watcher
            Role points/windlass-labels-watcher
            RoleBinding points/windlass-labels-watcher
            ClusterRole windlass-labels-processor
            ClusterRoleBinding windlass-labels-processor
            Role queue/windlass-labels-processor
            RoleBinding queue/windlass-labels-processor
            Role records/windlass-labels-processor
            RoleBinding records/windlass-labels-processor
            Role points/windlass-labels-processor
            RoleBinding points/windlass-labels-processor
            ValidatingAdmissionPolicy windlass-labels-store
            ValidatingAdmissionPolicyBinding windlass-labels-store
            ValidatingAdmissionPolicy windlass-labels-node
            ValidatingAdmissionPolicyBinding windlass-labels-node
            Deployment home/windlass-labels-watcher
            PodDisruptionBudget home/windlass-labels-watcher
            Deployment home/windlass-labels-processor
            PodDisruptionBudget home/windlass-labels-processor
        "#]],
    );
}

#[test]
fn accounts_may_do_what_they_must_and_no_more() {
    check(
        &rights(Account::Watcher),
        &expect![[r#"
            everywhere: /nodes get list watch
            everywhere: events.k8s.io/events create patch
            queue: /configmaps get list watch create
            records: /configmaps get list
            points: /configmaps get list watch create update delete
            points: coordination.k8s.io/leases get list watch create update delete
        "#]],
    );
    check(
        &rights(Account::Processor),
        &expect![[r#"
            everywhere: /nodes get list watch patch
            everywhere: events.k8s.io/events create patch
            queue: /configmaps get list watch patch delete
            queue: coordination.k8s.io/leases get list create update delete
            records: /configmaps get list create update delete
            points: coordination.k8s.io/leases get create update
        "#]],
    );
}

#[test]
fn who_may_write_to_the_stores_is_spelled_out() {
    let policy = find("ValidatingAdmissionPolicy", "windlass-labels-store");
    let variables = &policy["spec"]["variables"];
    check(
        &format!("{}\n{}\n", text(&variables[0]["expression"]), text(&variables[1]["expression"])),
        &expect![[r#"
            [
              "system:serviceaccount:home:windlass-labels-watcher",
              "system:serviceaccount:home:windlass-labels-processor",
              "system:serviceaccount:kube-system:namespace-controller",
              "system:serviceaccount:kube-system:generic-garbage-collector",
              "system:serviceaccount:kube-system:root-ca-cert-publisher",
              "system:kube-controller-manager",
            ]
            [
              "wheel",
              "quo\"ted",
            ]
        "#]],
    );
    let selected = &policy["spec"]["matchConstraints"]["namespaceSelector"]["matchExpressions"][0];
    assert_eq!(selected["values"], json!(["queue", "records", "points"]));
}

#[test]
fn pods_wait_for_no_label_and_have_no_privilege() {
    for account in Account::ALL {
        let pod = &find("Deployment", account.name())["spec"]["template"]["spec"];
        assert!(pod.get("nodeSelector").is_none() && pod.get("affinity").is_none());
        assert_eq!(pod["tolerations"][0]["key"], "labels.windlass.dev/restore-pending");
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
        let security = &pod["containers"][0]["securityContext"];
        assert_eq!(security["readOnlyRootFilesystem"], true);
        assert_eq!(security["allowPrivilegeEscalation"], false);
        assert_eq!(security["capabilities"], json!({"drop": ["ALL"]}));
    }
}

#[test]
fn services_are_told_where_their_stores_are() {
    let deployment = find("Deployment", Account::Processor.name());
    let spec = &deployment["spec"];
    assert_eq!(spec["replicas"], 2);
    assert_eq!(
        spec["template"]["spec"]["containers"][0]["args"],
        json!([
            "labels",
            "process",
            "--listen=0.0.0.0:9180",
            "--transaction-namespace=queue",
            "--metadata-namespace=records",
            "--checkpoint-namespace=points",
        ])
    );
}
