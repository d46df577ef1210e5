//! Every bound from both sides, and the defaults.

use expect_test::expect;

use super::*;

fn plain() -> wire::TaskSpec {
    wire::TaskSpec { command: "true".to_owned(), ..Default::default() }
}

fn with(change: impl FnOnce(&mut wire::TaskSpec)) -> Result<Spec, SpecError> {
    let mut message = plain();
    change(&mut message);
    Spec::new(message)
}

fn with_resources(change: impl FnOnce(&mut wire::Resources)) -> Result<Spec, SpecError> {
    with(|spec| change(spec.resources.get_or_insert_default()))
}

fn with_limits(change: impl FnOnce(&mut wire::Limits)) -> Result<Spec, SpecError> {
    with(|spec| change(spec.limits.get_or_insert_default()))
}

fn numbered(count: usize) -> BTreeMap<String, String> {
    (0..count).map(|number| (format!("n{number}"), String::new())).collect()
}

#[test]
fn what_is_not_said_has_a_default() {
    expect![[r#"
        Spec {
            command: "true",
            args: [],
            env: {},
            workdir: "/",
            user: User {
                uid: 65534,
                gid: 65534,
            },
            stdin: b"",
            rootfs: "",
            network: None,
            resources: Resources {
                cpu_millis: 100,
                memory_bytes: 268435456,
                pids: 256,
                scratch_bytes: 67108864,
                scratch: Memory,
            },
            limits: Limits {
                cpu_millis: None,
                memory_bytes: 268435456,
                pids: 256,
                scratch_bytes: 67108864,
            },
            timeout: None,
            grace: 10s,
            retries: 0,
            backoff: 10s,
            restart_on_cluster_error: false,
            idempotency_key: "",
            name: "",
            labels: {},
            priority: 0,
        }
    "#]]
    .assert_debug_eq(&Spec::new(plain()).unwrap());
}

#[test]
fn the_last_allowed_value_is_allowed() {
    with(|spec| spec.args = vec![String::new(); ARGS_MAX]).unwrap();
    with(|spec| spec.args = vec!["x".repeat(ARGV_AND_ENV_BYTES_MAX - "true".len() - 2)]).unwrap();
    with(|spec| spec.env = numbered(ENV_NAMES_MAX)).unwrap();
    with(|spec| spec.workdir = "/a/b..c/.d".to_owned()).unwrap();
    with(|spec| spec.stdin = vec![0; STDIN_BYTES_MAX].into()).unwrap();
    with(|spec| spec.rootfs = "r".repeat(ROOTFS_BYTES_MAX)).unwrap();
    with(|spec| spec.network = wire::Network::Host.into()).unwrap();
    with(|spec| spec.timeout_ms = Some(1000)).unwrap();
    with(|spec| spec.timeout_ms = Some(30 * 24 * 3_600_000)).unwrap();
    with(|spec| spec.grace_ms = Some(0)).unwrap();
    with(|spec| spec.grace_ms = Some(600_000)).unwrap();
    with(|spec| spec.backoff_ms = Some(300_000)).unwrap();
    with(|spec| spec.retries = 100).unwrap();
    with(|spec| spec.idempotency_key = "k".repeat(128)).unwrap();
    with(|spec| spec.name = "n".repeat(128)).unwrap();
    with(|spec| spec.labels = numbered(LABELS_MAX)).unwrap();
    with(|spec| spec.labels = [("k".repeat(63), "v".repeat(63))].into()).unwrap();
    with(|spec| spec.priority = -100).unwrap();
    with(|spec| spec.priority = 100).unwrap();
    with_resources(|resources| resources.memory_bytes = Some(8 << 20)).unwrap();
    with_resources(|resources| resources.cpu_millis = Some(1)).unwrap();
    with_limits(|limits| limits.cpu_millis = Some(100)).unwrap();
}

fn told(refusals: impl IntoIterator<Item = Result<Spec, SpecError>>) -> String {
    refusals.into_iter().map(|refusal| format!("{}\n", refusal.unwrap_err())).collect()
}

#[test]
fn a_refused_text_names_its_field() {
    let refusals = [
        with(|spec| spec.command = String::new()),
        with(|spec| spec.command = "a\0b".to_owned()),
        with(|spec| spec.args = vec![String::new(); ARGS_MAX + 1]),
        with(|spec| spec.args = vec!["ok".to_owned(), "\0".to_owned()]),
        with(|spec| spec.args = vec!["x".repeat(ARGV_AND_ENV_BYTES_MAX - "true".len() - 1)]),
        with(|spec| spec.env = numbered(ENV_NAMES_MAX + 1)),
        with(|spec| spec.env = [("A=B".to_owned(), String::new())].into()),
        with(|spec| spec.env = [(String::new(), String::new())].into()),
        with(|spec| spec.env = [("A".to_owned(), "\0".to_owned())].into()),
        with(|spec| spec.workdir = "a".to_owned()),
        with(|spec| spec.workdir = "/a/../b".to_owned()),
        with(|spec| spec.workdir = "/a/".to_owned()),
        with(|spec| spec.workdir = "//".to_owned()),
        with(|spec| spec.user = "nobody".to_owned()),
        with(|spec| spec.user = "1:".to_owned()),
        with(|spec| spec.user = "+1".to_owned()),
        with(|spec| spec.user = "4294967296".to_owned()),
        with(|spec| spec.stdin = vec![0; STDIN_BYTES_MAX + 1].into()),
        with(|spec| spec.rootfs = "r".repeat(ROOTFS_BYTES_MAX + 1)),
        with(|spec| spec.rootfs = "../etc".to_owned()),
        with(|spec| spec.rootfs = "..".to_owned()),
    ];
    expect![[r#"
        command: must not be empty
        command: has a zero byte
        args: has 1025 entries; at most 1024 are allowed
        args[1]: has a zero byte
        args and env: has 32769 bytes; at most 32768 are allowed
        env: has 257 entries; at most 256 are allowed
        env: "A=B" has `=` in its name
        env: must not be empty
        env[A]: has a zero byte
        workdir: "a" is not an absolute path in its shortest form
        workdir: "/a/../b" is not an absolute path in its shortest form
        workdir: "/a/" is not an absolute path in its shortest form
        workdir: "//" is not an absolute path in its shortest form
        user: "nobody" is not a number, or two joined by `:`
        user: "1:" is not a number, or two joined by `:`
        user: "+1" is not a number, or two joined by `:`
        user: "4294967296" is not a number, or two joined by `:`
        stdin: has 16385 bytes; at most 16384 are allowed
        rootfs: has 64 bytes; at most 63 are allowed
        rootfs: "../etc" has characters other than letters, digits, `.`, `_` and `-`
        rootfs: ".." has characters other than letters, digits, `.`, `_` and `-`
    "#]]
    .assert_eq(&told(refusals));
}

#[test]
fn a_refused_number_names_its_field() {
    let refusals = [
        with(|spec| spec.network = 7),
        with(|spec| spec.timeout_ms = Some(999)),
        with(|spec| spec.timeout_ms = Some(30 * 24 * 3_600_000 + 1)),
        with(|spec| spec.grace_ms = Some(600_001)),
        with(|spec| spec.backoff_ms = Some(300_001)),
        with(|spec| spec.retries = 101),
        with(|spec| spec.idempotency_key = "k".repeat(129)),
        with(|spec| spec.name = "n".repeat(129)),
        with(|spec| spec.labels = numbered(LABELS_MAX + 1)),
        with(|spec| spec.labels = [(String::new(), String::new())].into()),
        with(|spec| spec.labels = [("k".repeat(64), String::new())].into()),
        with(|spec| spec.labels = [("k".to_owned(), "v".repeat(64))].into()),
        with(|spec| spec.priority = 101),
        with_resources(|resources| resources.cpu_millis = Some(0)),
        with_resources(|resources| resources.memory_bytes = Some((8 << 20) - 1)),
        with_resources(|resources| resources.pids = Some(0)),
        with_resources(|resources| resources.scratch_bytes = Some(0)),
        with_resources(|resources| resources.scratch_medium = 9),
        with_limits(|limits| limits.cpu_millis = Some(99)),
        with_limits(|limits| limits.memory_bytes = Some(1)),
        with_limits(|limits| limits.pids = Some(255)),
        with_limits(|limits| limits.scratch_bytes = Some(1)),
    ];
    expect![[r#"
        network: 7 is unknown
        timeout_ms: is 999; at least 1000 is needed
        timeout_ms: is 2592000001; at most 2592000000 is allowed
        grace_ms: is 600001; at most 600000 is allowed
        backoff_ms: is 300001; at most 300000 is allowed
        retries: is 101; at most 100 is allowed
        idempotency_key: has 129 bytes; at most 128 are allowed
        name: has 129 bytes; at most 128 are allowed
        labels: has 33 entries; at most 32 are allowed
        labels: must not be empty
        labels: has 64 bytes; at most 63 are allowed
        labels[k]: has 64 bytes; at most 63 are allowed
        priority: is 101, not between -100 and 100
        resources.cpu_millis: is 0; at least 1 is needed
        resources.memory_bytes: is 8388607; at least 8388608 is needed
        resources.pids: is 0; at least 1 is needed
        resources.scratch_bytes: is 0; at least 1 is needed
        resources.scratch_medium: 9 is unknown
        limits.cpu_millis: is 99; at least 100 is needed
        limits.memory_bytes: is 1; at least 268435456 is needed
        limits.pids: is 255; at least 256 is needed
        limits.scratch_bytes: is 1; at least 67108864 is needed
    "#]]
    .assert_eq(&told(refusals));
}

#[test]
fn scratch_on_disk_is_demanded_and_scratch_in_memory_is_memory() {
    let demand = |medium: wire::ScratchMedium| {
        let spec = with_resources(|resources| resources.scratch_medium = medium.into());
        spec.unwrap().demand().disk_bytes
    };
    assert_eq!(demand(wire::ScratchMedium::Memory), 0);
    assert_eq!(demand(wire::ScratchMedium::Disk), 64 << 20);
}

#[test]
fn a_user_without_group_has_the_group_of_its_number() {
    let user = |text: &str| with(|spec| spec.user = text.to_owned()).unwrap().user;
    assert_eq!(user("1000"), User { uid: 1000, gid: 1000 });
    assert_eq!(user("0:7"), User { uid: 0, gid: 7 });
}
