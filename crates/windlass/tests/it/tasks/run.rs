//! `windlass run`: it prints what the command prints, and ends as the command does.

use std::{
    io::{BufRead, BufReader, Read, Write},
    process::Stdio,
};

use rustix::process::{Pid, Signal, kill_process};

use super::node::{Node, folder};

#[test]
fn run_ends_as_the_task_does() {
    let (_folder, path) = folder();
    let node = Node::start(&path);
    for (words, code, stdout, stderr) in [
        (&["--", "sh", "-c", "exit 7"][..], 7, "", ""),
        (&["--", "echo", "hello"], 0, "hello\n", ""),
        (&["echo", "--", "-n", "x"], 0, "x", ""),
        (&["--", "sh", "-c", "echo out; echo err >&2"], 0, "out\n", "err\n"),
        (&["--wait", "--", "echo", "hello"], 0, "", ""),
        (&["--env", "NAME=value", "--", "sh", "-c", "echo $NAME$HOME"], 0, "value\n", ""),
    ] {
        let ended = node.ask(&[&["run"], words].concat());
        assert_eq!(ended.code, Some(code), "{words:?}: {ended:?}");
        assert_eq!((&*ended.stdout, &*ended.stderr), (stdout, stderr), "{words:?}");
    }
}

#[test]
fn ends_that_a_command_has_not_chosen_are_told_in_words() {
    let (_folder, path) = folder();
    let node = Node::start(&path);
    for (words, code, told) in [
        (&["--", "sh", "-c", "kill -TERM $$"][..], 143, "signal 15"),
        (&["--timeout", "1s", "--grace", "0s", "--", "sleep", "60"], 124, "--timeout"),
        (&["--", "no-such-program"], 125, "start failed"),
    ] {
        let ended = node.ask(&[&["run"], words].concat());
        assert_eq!(ended.code, Some(code), "{words:?}: {ended:?}");
        assert!(ended.stderr.contains(told), "{words:?}: {ended:?}");
        assert_eq!(ended.stderr.lines().count(), 2, "an error and a hint: {ended:?}");
    }
    let refused = node.ask(&["run", "--priority", "1000", "--", "true"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("priority: is 1000"), "{refused:?}");
}

#[test]
fn without_a_node_a_person_is_told_what_to_do() {
    let (_folder, path) = folder();
    let nowhere = format!("unix://{}/nothing.sock", path.display());
    for (words, code) in
        [(&["run", "--", "true"][..], 125), (&["run", "--detach", "true"], 3), (&["nodes"], 3)]
    {
        let mut command = crate::running::windlass([]);
        command.args(words).env("WINDLASS_ENDPOINT", &nowhere);
        let ended = super::node::ended(&mut command);
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert!(ended.stderr.contains("start one with `windlass up`"), "{ended:?}");
    }
}

#[test]
fn a_task_can_read_our_input_and_write_any_bytes() {
    let (_folder, path) = folder();
    let node = Node::start(&path);
    let mut command = node.command(&["run", "--stdin", "-", "--", "cat"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let bytes: Vec<u8> = (0..=255).collect();
    child.stdin.take().unwrap().write_all(&bytes).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.stdout, bytes);
}

#[test]
fn the_first_interrupt_cancels_and_waits() {
    let (_folder, path) = folder();
    let node = Node::start(&path);
    let script = "trap 'echo stopped; exit 0' TERM; echo begun; while :; do sleep 0.1; done";
    let mut command = node.command(&["run", "--name", "slow", "--", "sh", "-c", script]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "begun\n");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "stopped\n", "it waits for the end of the command");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(words.contains("canceling") && words.contains("canceled by local"), "{words}");
    let tasks = node.json(&["task", "list", "--status", "canceled"]);
    assert_eq!(tasks[0]["name"], "slow");
    assert!(tasks[0]["stopped_at"].is_string(), "{tasks}");
}

#[test]
fn a_retried_task_is_followed_through_its_attempts() {
    let (_folder, path) = folder();
    let node = Node::start(&path);
    let ended = node.ask(&[
        "run",
        "--retries",
        "1",
        "--backoff",
        "0s",
        "--",
        "sh",
        "-c",
        "echo attempt $WINDLASS_ATTEMPT; exit 5",
    ]);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert_eq!(ended.stdout, "attempt 1\nattempt 2\n");
}

/// Whoever had waited was not told which task it had been.
#[test]
fn a_task_whose_node_is_gone_can_be_found_again() {
    let (_folder, path) = folder();
    let node = Node::start(&path);
    let mut command = node.command(&["run", "--", "sh", "-c", "echo begun; sleep 600"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "begun\n");
    let task = node.json(&["task", "list"]);
    // Kills it.
    drop(node);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    let words = String::from_utf8(output.stderr).unwrap();
    let id = task[0]["id"].as_str().unwrap();
    assert!(words.contains(&format!("`windlass task wait {id}`")), "{words}");
}
