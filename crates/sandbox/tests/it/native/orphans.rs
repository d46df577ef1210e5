//! What is left when a process dies that made a container.

use std::{
    io::{Read, Write},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    pipe::pipe,
    process::{Signal, WaitOptions, kill_process, waitpid},
    thread::{NanosleepRelativeResult, nanosleep},
};
use sandbox::{Runtime, native::Native};

use super::{
    alone::{alone, fork, is_root},
    scene::{PATIENCE, Scene},
};
use crate::scene::shell;

/// Creating takes about ten milliseconds; it is interrupted at every fifth of one, and past its end.
const MOMENT: Duration = Duration::from_micros(200);
const MOMENTS: u32 = 80;

/// A killed shim takes its container along, and what the kernel keeps is found and removed.
#[test]
fn what_a_killed_shim_leaves_is_found_and_removed() {
    if !is_root("what_a_killed_shim_leaves_is_found_and_removed") {
        return;
    }
    let scene = Scene::new();
    let (ready, told) = pipe().unwrap();
    let (_words, shim) = fork(|| {
        let mut attempt = scene.start(&shell("sleep 1000 & sleep 1000"));
        std::fs::File::from(told).write_all(attempt.id.to_string().as_bytes()).unwrap();
        attempt.wait();
    });
    let mut name = [0; 64];
    let read = std::fs::File::from(ready).read(&mut name).unwrap();
    let id = std::str::from_utf8(&name[..read]).unwrap().parse().unwrap();
    kill_process(shim, Signal::KILL).unwrap();
    waitpid(Some(shim), WaitOptions::empty()).unwrap();

    let mut runtime = Native::new(&scene.site);
    assert_eq!(runtime.list_orphans().unwrap(), [id]);
    runtime.cleanup(id).unwrap();
    assert_eq!(runtime.list_orphans().unwrap(), []);
}

/// However far it was: what it made holds on to the pipe, which ends when the last of it is gone.
#[test]
fn nothing_outlives_a_shim_killed_while_it_creates() {
    if !is_root("nothing_outlives_a_shim_killed_while_it_creates") {
        return;
    }
    for moment in (0..MOMENTS).map(|moment| moment * MOMENT) {
        let scene = Scene::new();
        let (held, holding) = pipe().unwrap();
        let (_words, shim) = fork(|| {
            scene.start(&shell("sleep 1000")).wait();
        });
        drop(holding);
        let passed = nanosleep(&Timespec::try_from(moment).unwrap());
        assert!(matches!(passed, NanosleepRelativeResult::Ok), "{passed:?}");
        kill_process(shim, Signal::KILL).unwrap();
        waitpid(Some(shim), WaitOptions::empty()).unwrap();
        let ended = poll(&mut [PollFd::new(&held, PollFlags::IN)], Some(&PATIENCE)).unwrap();
        assert_eq!(ended, 1, "something lives on {moment:?} after its beginning");
        let mut runtime = Native::new(&scene.site);
        for id in runtime.list_orphans().unwrap() {
            runtime.cleanup(id).unwrap();
        }
    }
}

#[test]
fn two_sites_never_touch_each_other() {
    alone("two_sites_never_touch_each_other", || {
        let (ours, theirs) = (Scene::new(), Scene::new());
        let line = "trap 'echo lived; exit' TERM; echo ready; sleep 1000 & wait";
        let mut attempt = ours.start(&shell(line));
        assert_eq!(attempt.hear(), "ready\n");
        let mut other = Native::new(&theirs.site);
        assert_eq!(other.list_orphans().unwrap(), []);
        other.cleanup(attempt.id).unwrap();
        attempt.runtime.signal(Signal::TERM).unwrap();
        let ran = attempt.end();
        assert_eq!(ran.stdout, "lived\n", "{ran:?}");
    });
}
