//! What a command can reach, and what it cannot.

use std::{collections::BTreeMap, fs, ptr};

use sandbox::{Exit, Network, Runtime, Spec, User};

use super::{
    alone::alone,
    scene::{Scene, in_small_root},
};
use crate::scene::{shell, spec};

#[test]
fn no_capability_and_no_way_to_gain_one() {
    alone("no_capability_and_no_way_to_gain_one", || {
        let scene = Scene::new();
        let said = scene.shell("grep -E '^(Cap|NoNewPrivs|Groups)' /proc/self/status").stdout;
        let fields: BTreeMap<_, _> = said.lines().filter_map(|line| line.split_once(':')).collect();
        for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            assert_eq!(fields[set].trim(), "0000000000000000", "{set}");
        }
        assert_eq!(fields["NoNewPrivs"].trim(), "1");
        assert_eq!(fields["Groups"].trim(), "", "root's groups stay with root");
    });
}

/// A command had the session of whoever had started the node, with all keys in it, and shared it with
/// every other command.
#[test]
#[expect(unsafe_code, reason = "no crate here wraps the calls for keys")]
fn keys_of_our_session_are_not_the_commands() {
    alone("keys_of_our_session_are_not_the_commands", || {
        // SAFETY: without a name the call reads no memory; this process is the test's own.
        let ours = unsafe {
            libc::syscall(libc::SYS_keyctl, libc::KEYCTL_JOIN_SESSION_KEYRING, ptr::null::<u8>())
        };
        assert!(ours > 0, "{}", std::io::Error::last_os_error());
        // Which session it has, as the kernel tells the command itself: KEYCTL_GET_KEYRING_ID of
        // KEY_SPEC_SESSION_KEYRING.
        let ask = format!("print syscall({}, 0, -3, 0)", libc::SYS_keyctl);
        let ran = Scene::new().run(&spec(&["perl", "-e", &ask]));
        let theirs: i64 = ran.stdout.parse().unwrap_or_else(|_| panic!("{ran:?}"));
        assert!(theirs > 0 && theirs != ours, "ours is {ours}, theirs is {theirs}");
    });
}

#[test]
fn root_in_its_own_root_may_kill_and_listen() {
    alone("root_in_its_own_root_may_kill_and_listen", || {
        let scene = Scene::new().with_small_root();
        let line = "grep -E '^Cap(Eff|Bnd)' /proc/self/status; id; touch /made && ls /made";
        let ran = scene.run(&in_small_root(shell(line), 0));
        // KILL is 5, NET_BIND_SERVICE is 10.
        assert!(ran.stdout.contains("CapEff:\t0000000000000420\n"), "{ran:?}");
        assert!(ran.stdout.contains("CapBnd:\t0000000000000420\n"), "{ran:?}");
        assert!(ran.stdout.ends_with("/made\n"), "{ran:?}");
        assert!(!scene.site.roots["small"].join("made").exists(), "a root is only read");
    });
}

#[test]
fn a_root_must_be_known() {
    alone("a_root_must_be_known", || {
        let error = Scene::new().prepare(&in_small_root(shell("true"), 1)).err().unwrap();
        assert!(error.ends_with("this node has no root named \"small\""), "{error}");
    });
}

#[test]
fn what_is_not_permitted_is_refused() {
    alone("what_is_not_permitted_is_refused", || {
        let mut scene = Scene::new();
        let root = Spec { user: User { uid: 0, gid: 0 }, ..shell("id -u") };
        let host = Spec { network: Network::Host, ..shell("ls /sys/class/net") };
        assert!(scene.prepare(&root).is_err());
        assert!(scene.prepare(&host).is_err());
        scene.site.permissions.host_root = true;
        assert_eq!(scene.run(&root).stdout, "0\n");
    });
}

#[test]
fn without_a_network_there_is_only_loopback_and_it_is_up() {
    alone("without_a_network_there_is_only_loopback_and_it_is_up", || {
        let said = Scene::new().shell("ls /sys/class/net; cat /sys/class/net/lo/flags").stdout;
        assert_eq!(said, "lo\n0x9\n");
    });
}

#[test]
fn the_host_network_is_the_hosts() {
    alone("the_host_network_is_the_hosts", || {
        let mut scene = Scene::new();
        scene.site.permissions.net_host = true;
        let ours = fs::read_link("/proc/self/ns/net").unwrap();
        let spec = Spec { network: Network::Host, ..shell("readlink /proc/self/ns/net") };
        assert_eq!(scene.run(&spec).stdout.trim(), ours.to_str().unwrap());
    });
}

#[test]
fn the_kernel_shows_nothing_of_the_host() {
    alone("the_kernel_shows_nothing_of_the_host", || {
        let mut scene = Scene::new();
        scene.site.permissions.host_root = true;
        let line = "for file in kcore keys timer_list; do head -c 1 /proc/$file; done; \
                    ls /sys/firmware /proc/acpi /proc/scsi; \
                    echo 1 > /proc/sys/kernel/panic; echo h > /proc/sysrq-trigger; \
                    mkdir /sys/fs/cgroup/x; echo 1 > /sys/fs/cgroup/memory/memory.limit_in_bytes; \
                    echo 1 > /sys/fs/cgroup/memory.max; true";
        let root = Spec { user: User { uid: 0, gid: 0 }, ..shell(line) };
        let ran = scene.run(&root);
        let shown: Vec<_> = ran.stdout.lines().filter(|line| !line.ends_with(':')).collect();
        assert!(shown.iter().all(|line| line.is_empty()), "{ran:?}");
        assert!(ran.stderr.matches("Read-only file system").count() >= 4, "{ran:?}");
    });
}

#[test]
fn the_group_tells_its_limits() {
    alone("the_group_tells_its_limits", || {
        let line =
            "cat /sys/fs/cgroup/memory/memory.limit_in_bytes || cat /sys/fs/cgroup/memory.max";
        let ran = Scene::new().shell(line);
        assert_eq!(ran.stdout.trim(), (256 << 20).to_string(), "{ran:?}");
    });
}

#[test]
fn devices_are_the_harmless_ones() {
    alone("devices_are_the_harmless_ones", || {
        let line =
            "ls /dev; echo gone > /dev/null; head -c 4 /dev/zero | wc -c; test -e /dev/pts/ptmx";
        let ran = Scene::new().shell(line);
        let (devices, count) = ran.stdout.trim().rsplit_once('\n').unwrap();
        let mut devices: Vec<_> = devices.lines().collect();
        devices.retain(|name| !["fd", "stdin", "stdout", "stderr", "kcore"].contains(name));
        let harmless = ["full", "null", "ptmx", "pts", "random", "shm", "tty", "urandom", "zero"];
        assert_eq!(devices, harmless);
        assert_eq!((count, ran.exit), ("4", Exit::Code(0)), "{ran:?}");
    });
}

#[test]
fn processes_of_the_host_are_out_of_sight() {
    alone("processes_of_the_host_are_out_of_sight", || {
        let said = Scene::new().shell("ls /proc | grep -E '^[0-9]+$' | wc -l").stdout;
        let count: u32 = said.trim().parse().unwrap();
        assert!(count < 8, "{count} processes are seen");
    });
}

/// The init is a fork of our program, and a command may be root: neither its file nor its memory is
/// open to it.
#[test]
fn task_cannot_overwrite_our_binary() {
    alone("task_cannot_overwrite_our_binary", || {
        let scene = Scene::new().with_small_root();
        let ours = std::env::current_exe().unwrap();
        let before = fs::metadata(&ours).unwrap();
        let line = "cat /proc/1/exe; echo x > /proc/1/exe; cat /proc/1/fd/*; cat /proc/1/mem; \
                    cat /proc/1/root/proc/1/exe; true";
        let ran = scene.run(&in_small_root(shell(line), 0));
        assert_eq!(ran.stdout, "", "{ran:?}");
        assert!(ran.stderr.matches("Permission denied").count() >= 5, "{ran:?}");
        let after = fs::metadata(&ours).unwrap();
        assert_eq!(before.modified().unwrap(), after.modified().unwrap());
    });
}

#[test]
fn a_link_in_a_foreign_root_leads_nowhere() {
    alone("a_link_in_a_foreign_root_leads_nowhere", || {
        let scene = Scene::new().with_small_root();
        std::os::unix::fs::symlink("/etc", scene.site.roots["small"].join("dev")).unwrap();
        let error = scene.prepare(&in_small_root(shell("true"), 1)).err().unwrap();
        assert!(error.contains("no place for a mount at /dev"), "{error}");
        assert!(scene.site.roots["small"].join("dev").is_symlink());
    });
}

#[test]
fn nothing_is_left_behind() {
    alone("nothing_is_left_behind", || {
        let scene = Scene::new();
        let mut attempt = scene.start(&shell("sleep 1000 & exit 0"));
        attempt.wait();
        let id = attempt.id;
        attempt.end();
        let runtime = sandbox::native::Native::new(&scene.site);
        assert_eq!(runtime.list_orphans().unwrap(), []);
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains(&id.to_string()) && !mounts.contains("/stage"), "{mounts}");
    });
}
