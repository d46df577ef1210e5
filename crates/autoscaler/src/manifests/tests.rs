use super::*;

fn options() -> Options {
    Options { image: "registry.example/windlass:1".to_owned(), replicas: 2 }
}

/// Objects, one line each, and what roles allow.
fn inventory() -> String {
    let words = |value: &Value| {
        let words = value.as_array().into_iter().flatten().filter_map(Value::as_str);
        words.collect::<Vec<_>>().join(" ")
    };
    let mut lines = String::new();
    for object in objects(&options()) {
        let (kind, name) = (&object["kind"], &object["metadata"]["name"]);
        lines += &format!("{} {}\n", kind.as_str().unwrap(), name.as_str().unwrap());
        for rule in object["rules"].as_array().into_iter().flatten() {
            let (group, resources) = (words(&rule["apiGroups"]), words(&rule["resources"]));
            let (names, verbs) = (words(&rule["resourceNames"]), words(&rule["verbs"]));
            lines += &format!("  {group}/{resources} [{names}]: {verbs}\n");
        }
    }
    lines
}

#[test]
fn it_may_do_what_it_must_and_no_more() {
    let expected = "\
ServiceAccount windlass-autoscaler
ClusterRole windlass-autoscaler
  /nodes []: get list watch patch
  /pods namespaces persistentvolumes persistentvolumeclaims replicationcontrollers []: list watch
  /pods/eviction []: create
  apps/daemonsets replicasets statefulsets []: list watch
  batch/jobs []: list watch
  policy/poddisruptionbudgets []: list watch
  storage.k8s.io/csinodes []: list watch
  events.k8s.io/events []: create
ClusterRoleBinding windlass-autoscaler
Role windlass-autoscaler
  /configmaps []: create list watch
  /configmaps [cluster-autoscaler-status windlass-autoscaler-state cluster-autoscaler-status-dry-run windlass-autoscaler-state-dry-run]: get update patch
  coordination.k8s.io/leases []: create
  coordination.k8s.io/leases [cluster-autoscaler]: get update patch
RoleBinding windlass-autoscaler
Deployment windlass-autoscaler
PodDisruptionBudget windlass-autoscaler
";
    assert_eq!(inventory(), expected);
}

#[test]
fn pods_have_no_privilege() {
    let objects = objects(&options());
    let deployment = objects.iter().find(|it| it["kind"] == "Deployment").unwrap();
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    let container = &pod["containers"][0];
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    assert_eq!(container["securityContext"]["capabilities"], json!({"drop": ["ALL"]}));
}

#[test]
fn an_image_is_needed() {
    assert_eq!(options().validate(), Ok(()));
    assert_eq!(Options { image: String::new(), ..options() }.validate(), Err(Error::NoImage));
}
