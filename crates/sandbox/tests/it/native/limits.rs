//! Limits are held by the kernel.

use sandbox::{Exit, Kind, Medium, Outcome, Runtime, Spec};

use super::{
    alone::{alone, is_root},
    scene::Scene,
};
use crate::scene::{self, ended, exited, shell};

fn limited(spec: Spec, change: impl FnOnce(&mut sandbox::Limits)) -> Spec {
    let mut spec = spec;
    change(&mut spec.limits);
    spec
}

/// As the daemon hears of it: memory, processes, and files on a disk, which the shim measures.
#[tokio::test]
async fn limits_are_enforced() {
    if !is_root("limits_are_enforced") {
        return;
    }
    let mut host = scene::Scene::open(Kind::Native).await;
    let hog = limited(shell("exec tail /dev/zero"), |limits| limits.memory_bytes = 32 << 20);
    let killed = Outcome::Exited { exit: Exit::Signal(9), is_oom_killed: true };
    assert_eq!(ended(&mut host.start(hog)).await.outcome, killed);

    let bomb = limited(shell("sleep 1000 & sleep 1000 & true"), |limits| limits.pids = 2);
    let failed = ended(&mut host.start(bomb)).await.outcome;
    assert_eq!(failed, exited(2), "a shell that cannot fork says so");

    let writer = limited(shell("head -c 4M /dev/zero > /tmp/large; sleep 1000"), |limits| {
        limits.scratch_medium = Medium::Disk;
        limits.scratch_bytes = 1 << 20;
    });
    assert_eq!(ended(&mut host.start(writer)).await.outcome, Outcome::ScratchExceeded);
}

#[test]
fn too_much_memory_is_killed_and_told() {
    alone("too_much_memory_is_killed_and_told", || {
        let scene = Scene::new();
        // `tail` keeps a line without end in memory.
        let spec = limited(shell("exec tail /dev/zero"), |limits| limits.memory_bytes = 32 << 20);
        let ran = scene.run(&spec);
        assert_eq!(ran.exit, Exit::Signal(9));
        assert!(ran.stats.is_oom_killed);
        assert!(ran.stats.usage.peak_memory_bytes <= 32 << 20, "{:?}", ran.stats);
    });
}

/// The kernel picks one process; the others do not go on without it, and nothing passes for success.
#[test]
fn who_runs_out_of_memory_ends_as_a_whole() {
    alone("who_runs_out_of_memory_ends_as_a_whole", || {
        let scene = Scene::new();
        for rest in ["sleep 1000", "exit 0"] {
            let line = format!("tail /dev/zero; {rest}");
            let ran = scene.run(&limited(shell(&line), |limits| limits.memory_bytes = 32 << 20));
            assert_eq!((ran.exit, ran.stats.is_oom_killed), (Exit::Signal(9), true), "{rest}");
        }
    });
}

#[test]
fn scratch_in_memory_counts_as_memory() {
    alone("scratch_in_memory_counts_as_memory", || {
        let scene = Scene::new();
        let spec = limited(shell("head -c 64M /dev/zero > /tmp/large"), |limits| {
            limits.memory_bytes = 16 << 20;
            limits.scratch_bytes = 128 << 20;
        });
        assert!(scene.run(&spec).stats.is_oom_killed);
    });
}

#[test]
fn a_fork_bomb_meets_its_limit() {
    alone("a_fork_bomb_meets_its_limit", || {
        let scene = Scene::new();
        let line = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do sleep 100 & done; echo all";
        let ran = scene.run(&limited(shell(line), |limits| limits.pids = 8));
        assert_ne!(ran.exit, Exit::Code(0));
        assert!(ran.stderr.contains("fork"), "{}", ran.stderr);
        assert_eq!(scene.shell(line).stdout, "all\n", "without the limit all of them begin");
    });
}

#[test]
fn scratch_in_memory_is_full_when_it_is_full() {
    alone("scratch_in_memory_is_full_when_it_is_full", || {
        let scene = Scene::new();
        let line = "head -c 2M /dev/zero > /var/tmp/large";
        let ran = scene.run(&limited(shell(line), |limits| limits.scratch_bytes = 1 << 20));
        assert!(ran.stderr.contains("No space left on device"), "{}", ran.stderr);
        assert!(!ran.stats.is_oom_killed);
        assert_eq!(ran.stats.scratch_bytes, None);
    });
}

#[test]
fn a_scratch_of_one_byte_is_enough_to_run() {
    alone("a_scratch_of_one_byte_is_enough_to_run", || {
        let scene = Scene::new();
        let ran = scene.run(&limited(shell("echo ran"), |limits| limits.scratch_bytes = 1));
        assert_eq!(ran.stdout, "ran\n");
    });
}

#[test]
fn scratch_on_disk_is_measured() {
    alone("scratch_on_disk_is_measured", || {
        let scene = Scene::new();
        let line = "head -c 2M /dev/zero > /tmp/large; echo written; read end";
        let spec = limited(shell(line), |limits| limits.scratch_medium = Medium::Disk);
        let mut attempt = scene.start(&spec);
        attempt.wait();
        let stats = attempt.runtime.stats().unwrap();
        assert!(stats.scratch_bytes.is_some_and(|bytes| bytes >= 2 << 20), "{stats:?}");
        attempt.end();
        assert!(
            !scene
                .site
                .data_dir
                .join("tasks")
                .read_dir()
                .unwrap()
                .any(|task| { task.unwrap().path().join("1/scratch").exists() })
        );
    });
}

#[test]
fn a_quota_holds_on_an_idle_machine() {
    alone("a_quota_holds_on_an_idle_machine", || {
        let scene = Scene::new();
        // A tenth of a processor: what takes a second of work there takes ten.
        let line = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; cat /sys/fs/cgroup/cpu/cpu.stat || cat /sys/fs/cgroup/cpu.stat";
        let ran = scene.run(&limited(shell(line), |limits| limits.cpu_quota_millis = Some(100)));
        let throttled = ran.stdout.lines().find_map(|line| line.strip_prefix("nr_throttled "));
        let throttled: u64 = throttled.expect("the group tells how often").parse().unwrap();
        assert!(throttled > 0, "{}", ran.stdout);
    });
}
