//! How commands begin and end.

use rustix::process::Signal;
use sandbox::{Boottime, Exit, Runtime, Spec};

use super::{
    alone::alone,
    scene::{Scene, chain},
};
use crate::scene::{shell, spec};

#[test]
fn a_command_runs_and_says_how_it_ended() {
    alone("a_command_runs_and_says_how_it_ended", || {
        let scene = Scene::new();
        let ran = scene.shell("echo out; echo err >&2; exit 7");
        assert_eq!(ran.exit, Exit::Code(7));
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("out\n", "err\n"));
        assert!(ran.stats.usage.peak_memory_bytes > 0);
        assert!(!ran.stats.is_oom_killed);
    });
}

#[test]
fn a_signal_is_told_from_a_code() {
    alone("a_signal_is_told_from_a_code", || {
        let scene = Scene::new();
        assert_eq!(scene.shell("kill -USR1 $$").exit, Exit::Signal(10));
    });
}

#[test]
fn the_command_gets_what_it_was_given_and_no_more() {
    alone("the_command_gets_what_it_was_given_and_no_more", || {
        let scene = Scene::new();
        let mut spec =
            Spec { stdin: b"words".to_vec(), ..shell("cat; pwd; env; ls /proc/self/fd") };
        spec.workdir = "/usr/lib".into();
        spec.env.insert("GREETING".to_owned(), "good day".to_owned());
        let said = scene.run(&spec).stdout;
        // The shell itself adds where it is; `ls` has the directory open that it lists.
        let expected =
            "words/usr/lib\nGREETING=good day\nPATH=/usr/bin:/bin\nPWD=/usr/lib\n0\n1\n2\n3\n";
        let sorted = |text: &str| {
            let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(sorted(&said), sorted(expected));
    });
}

#[test]
fn what_cannot_be_executed_never_started() {
    alone("what_cannot_be_executed_never_started", || {
        let scene = Scene::new();
        let mut attempt = scene.prepare(&spec(&["no-such-program"])).unwrap();
        let error = chain(&attempt.runtime.start(&|| Boottime::NEVER).unwrap_err());
        assert!(error.contains("cannot execute \"no-such-program\": No such file"), "{error}");
        attempt.runtime.cleanup(attempt.id).unwrap();
    });
}

/// A shim that had a command executed heard of nothing else for three seconds, its deadline included.
#[test]
fn a_command_that_is_not_executed_by_the_deadline_is_killed() {
    alone("a_command_that_is_not_executed_by_the_deadline_is_killed", || {
        let scene = Scene::new();
        let mut attempt = scene.prepare(&shell("exec sleep 1000")).unwrap();
        match attempt.runtime.start(&|| Boottime::default()) {
            // It was, at the last moment: it is killed all the same.
            Ok(()) => assert_eq!(attempt.wait(), Exit::Signal(Signal::KILL.as_raw())),
            Err(error) => {
                let error = chain(&error);
                assert!(
                    error.contains("was not executed") || error.contains("init ended"),
                    "{error}"
                );
            }
        }
        attempt.runtime.cleanup(attempt.id).unwrap();
    });
}

#[test]
fn a_missing_working_directory_is_found_before_the_start() {
    alone("a_missing_working_directory_is_found_before_the_start", || {
        let scene = Scene::new();
        let spec = Spec { workdir: "/no/such/place".into(), ..shell("true") };
        assert!(scene.prepare(&spec).is_err());
    });
}

#[test]
fn term_reaches_a_command_without_a_handler() {
    alone("term_reaches_a_command_without_a_handler", || {
        let scene = Scene::new();
        let mut attempt = scene.start(&spec(&["sleep", "1000"]));
        attempt.runtime.signal(Signal::TERM).unwrap();
        assert_eq!(attempt.end().exit, Exit::Signal(15));
    });
}

#[test]
fn term_can_be_handled_and_kill_cannot() {
    alone("term_can_be_handled_and_kill_cannot", || {
        let scene = Scene::new();
        let line = "trap 'echo asked' TERM; echo ready; while :; do sleep 1000 & wait $!; done";
        let mut attempt = scene.start(&shell(line));
        assert_eq!(attempt.hear(), "ready\n");
        attempt.runtime.signal(Signal::TERM).unwrap();
        assert_eq!(attempt.hear(), "asked\n");
        attempt.runtime.signal(Signal::KILL).unwrap();
        assert_eq!(attempt.wait(), Exit::Signal(9));
        attempt.runtime.signal(Signal::KILL).unwrap();
        attempt.end();
    });
}

#[test]
fn what_a_command_leaves_behind_ends_with_it() {
    alone("what_a_command_leaves_behind_ends_with_it", || {
        let scene = Scene::new();
        let ran = scene.shell("setsid sleep 1000 & sleep 1000 & exit 3");
        assert_eq!(ran.exit, Exit::Code(3));
    });
}

#[test]
fn an_attempt_that_was_only_prepared_leaves_nothing() {
    alone("an_attempt_that_was_only_prepared_leaves_nothing", || {
        let scene = Scene::new();
        let mut attempt = scene.prepare(&shell("echo ran")).unwrap();
        attempt.runtime.cleanup(attempt.id).unwrap();
        attempt.runtime.cleanup(attempt.id).unwrap();
        assert_eq!(attempt.hear(), "");
        assert_eq!(attempt.runtime.list_orphans().unwrap(), []);
    });
}
