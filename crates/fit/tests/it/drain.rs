//! The rules of draining: the first that decides, decides.

use fit::Budgets;
use fit::drain::{BlockReason, Controllers, Options, Surroundings, Verdict, judge};
use k8s_openapi::api::core::v1::Pod;

const OWNED: &str = "ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: u, controller: true}]";

fn check(metadata: &str, rest: &str, options: Options, expected: Verdict) {
    let words = format!("{{metadata: {{name: p, {metadata}}}{rest}}}");
    let pod: Pod = serde_saphyr::from_str(&words).unwrap();
    let mut controllers = Controllers::default();
    controllers.add("default", "ReplicaSet", "web", Some(2));
    controllers.add("kube-system", "ReplicaSet", "web", Some(2));
    let covered = serde_saphyr::from_str(
        "{metadata: {name: b, namespace: kube-system}, spec: {selector: {matchLabels: {app: dns}}}}",
    );
    let surroundings = Surroundings {
        now: "2026-03-01T08:00:00Z".parse().unwrap(),
        options: &options,
        controllers: &controllers,
        budgets: &Budgets::new(&[covered.unwrap()]),
    };
    assert_eq!(judge(&pod, surroundings), expected, "{words}");
}

fn annotated(key: &str, value: &str) -> String {
    format!("annotations: {{{key}: '{value}'}}")
}

#[test]
fn each_rule_decides_what_is_its_own() {
    let safe = |value: &str| annotated("cluster-autoscaler.kubernetes.io/safe-to-evict", value);
    let mirror = annotated("kubernetes.io/config.mirror", "x");
    let daemon = annotated("cluster-autoscaler.kubernetes.io/daemonset-pod", "true");
    let listed = annotated("cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes", "a, b");
    let owned = format!("namespace: default, {OWNED}");
    let lost = owned.replace("name: web", "name: gone");
    let custom = owned.replace("kind: ReplicaSet", "kind: Flock");
    let set = owned.replace("kind: ReplicaSet", "kind: DaemonSet");
    let system = owned.replace("namespace: default", "namespace: kube-system");
    let local = ", spec: {volumes: [{name: a, emptyDir: {}}]}";
    let deleted = |at: &str| format!("{owned}, deletionTimestamp: '2026-03-01T{at}Z'");
    let grace = ", spec: {terminationGracePeriodSeconds: 60}";
    let with = |one: &str, other: &str| format!("{one}, {other}");
    let blocks = Verdict::Blocks;
    let table = [
        (owned.clone(), "", Verdict::Moves),
        (mirror, "", Verdict::Ignored),
        (deleted("07:58:29"), grace, Verdict::Ignored),
        (deleted("07:58:31"), grace, Verdict::Moves),
        (set, "", Verdict::Ignored),
        (daemon, "", Verdict::Ignored),
        (with("namespace: default", &safe("true")), local, Verdict::Moves),
        ("namespace: default".to_owned(), ", status: {phase: Failed}", Verdict::Moves),
        (
            "namespace: default".to_owned(),
            ", spec: {restartPolicy: OnFailure}, status: {phase: Succeeded}",
            Verdict::Moves,
        ),
        (with(&owned, &safe("on-completion")), "", blocks(BlockReason::NotSafeToEvictAnnotation)),
        (with(&owned, &safe("on-completion")), ", status: {phase: Failed}", Verdict::Moves),
        ("namespace: default".to_owned(), "", blocks(BlockReason::NotReplicated)),
        (custom, "", blocks(BlockReason::NotReplicated)),
        (lost, "", blocks(BlockReason::ControllerNotFound)),
        (system.clone(), "", blocks(BlockReason::UnmovableKubeSystemPod)),
        (with(&system, "labels: {app: dns}"), "", Verdict::Moves),
        (with(&owned, &safe("false")), "", blocks(BlockReason::NotSafeToEvictAnnotation)),
        (owned.clone(), local, blocks(BlockReason::LocalStorageRequested)),
        (
            owned.clone(),
            ", spec: {volumes: [{name: a, emptyDir: {medium: Memory}}]}",
            Verdict::Moves,
        ),
        (
            owned.clone(),
            ", spec: {volumes: [{name: c, hostPath: {path: /x}}]}",
            blocks(BlockReason::LocalStorageRequested),
        ),
        (with(&owned, &listed), local, Verdict::Moves),
    ];
    for (metadata, rest, expected) in table {
        check(&metadata, rest, Options::default(), expected);
    }
}

#[test]
fn flags_open_what_they_close() {
    let owned = format!("namespace: default, {OWNED}");
    let open = Options {
        skips_system_pods: false,
        skips_local_storage: false,
        skips_custom_controllers: false,
        replicas_min: 0,
    };
    check(&owned, ", spec: {volumes: [{name: a, emptyDir: {}}]}", open, Verdict::Moves);
    check(&owned.replace("ReplicaSet", "Flock"), "", open, Verdict::Moves);
    check(&owned.replace("namespace: default", "namespace: kube-system"), "", open, Verdict::Moves);
    let few = Options { replicas_min: 3, ..Options::default() };
    check(&owned, "", few, Verdict::Blocks(BlockReason::MinReplicasReached));
    check(&owned, "", Options { replicas_min: 2, ..few }, Verdict::Moves);
    assert_eq!(BlockReason::NotEnoughPdb.to_string(), "NotEnoughPdb");
}
