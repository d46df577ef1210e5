//! One function per obligation. Each runs one attempt and looks only through the trait and the
//! command's streams.

use rustix::process::Signal;

use super::{
    Act, Subject,
    trial::{Trial, USER, WORKDIR},
};
use crate::{Boottime, Exit};

pub(super) fn nothing_runs_before_start(subject: &mut impl Subject) {
    let (mut trial, prepared) = Trial::prepare(subject, Act::Speak);
    prepared.expect("prepare");
    assert_eq!(trial.runtime.exit().expect("exit"), None, "nothing has ended");
    trial.clean_up();
    assert_eq!(trial.stdout.rest(), "", "nothing was written");
    assert!(!trial.is_orphan(), "nothing is left");
}

pub(super) fn what_cannot_run_never_started(subject: &mut impl Subject) {
    let (mut trial, prepared) = Trial::prepare(subject, Act::Nonsense);
    let begun = prepared.and_then(|()| trial.runtime.start(&|| Boottime::NEVER));
    assert!(begun.is_err(), "a command that does not exist is no command that failed");
    trial.clean_up();
    assert_eq!((trial.stdout.rest(), trial.stderr.rest()), (String::new(), String::new()));
    assert!(!trial.is_orphan(), "nothing is left");
}

pub(super) fn streams_end_with_the_attempt(subject: &mut impl Subject) {
    let mut trial = Trial::start(subject, Act::Speak);
    assert_eq!(trial.exit(), Exit::Code(7));
    assert_eq!(trial.stdout.rest(), "out\n");
    assert_eq!(trial.stderr.rest(), "err\n");
    trial.clean_up();
}

pub(super) fn an_attempt_ends_with_its_last_process(subject: &mut impl Subject) {
    let mut trial = Trial::start(subject, Act::LeaveChild);
    assert_eq!(trial.exit(), Exit::Code(7));
    assert_eq!(trial.stdout.rest(), "", "nobody holds the streams any more");
    trial.clean_up();
    assert!(!trial.is_orphan(), "nothing is left");
}

pub(super) fn term_ends_a_command_that_does_not_mind(subject: &mut impl Subject) {
    let mut trial = Trial::start(subject, Act::Rest);
    trial.runtime.signal(Signal::TERM).expect("TERM");
    assert_eq!(trial.exit(), Exit::Signal(Signal::TERM.as_raw()));
    for signal in [Signal::TERM, Signal::KILL] {
        trial.runtime.signal(signal).expect("a signal after the end does nothing");
    }
    assert_eq!(trial.exit(), Exit::Signal(Signal::TERM.as_raw()), "the end does not change");
    trial.clean_up();
}

pub(super) fn term_may_be_handled_and_kill_may_not(subject: &mut impl Subject) {
    let mut trial = Trial::start(subject, Act::Resist);
    assert_eq!(trial.stdout.line(), "ready");
    trial.runtime.signal(Signal::TERM).expect("TERM");
    assert_eq!(trial.stdout.line(), "term");
    assert_eq!(trial.runtime.exit().expect("exit"), None, "it goes on");
    trial.runtime.signal(Signal::KILL).expect("KILL");
    assert_eq!(trial.exit(), Exit::Signal(Signal::KILL.as_raw()));
    assert_eq!(trial.stdout.rest(), "", "its children are gone too");
    trial.clean_up();
}

pub(super) fn a_command_is_as_it_was_asked_for(subject: &mut impl Subject) {
    let user = subject.user(USER);
    let mut trial = Trial::start(subject, Act::Show);
    assert_eq!(trial.exit(), Exit::Code(0));
    let expected = format!("input\na value\nunset\n{WORKDIR}\n{}:{}\n", user.uid, user.gid);
    assert_eq!(trial.stdout.rest(), expected);
    trial.clean_up();
}

pub(super) fn consumption_is_known_until_cleanup(subject: &mut impl Subject) {
    let mut trial = Trial::start(subject, Act::Speak);
    trial.runtime.stats().expect("stats while it runs");
    trial.exit();
    let stats = trial.runtime.stats().expect("stats after the end");
    assert!(stats.usage.peak_memory_bytes > 0, "{stats:?}");
    assert!(!stats.is_oom_killed, "{stats:?}");
    trial.clean_up();
}

pub(super) fn anybody_cleans_up_and_again(subject: &mut impl Subject) {
    let mut trial = Trial::start(subject, Act::Rest);
    let mut other = trial.subject.runtime();
    for _ in 0..2 {
        other.cleanup(trial.id).expect("cleanup by somebody else");
    }
    assert_eq!(trial.stdout.rest(), "", "nobody holds the streams any more");
    for _ in 0..2 {
        trial.clean_up();
    }
    assert!(!trial.is_orphan(), "nothing is left");
}

pub(super) fn orphans_are_found_by_their_own_site(subject: &mut impl Subject) {
    let id = subject.abandon();
    let is_orphan =
        |subject: &_| Subject::runtime(subject).list_orphans().expect("orphans").contains(&id);
    assert!(is_orphan(subject), "it is found");
    let mut stranger = subject.stranger();
    assert!(!stranger.list_orphans().expect("orphans").contains(&id), "another site knows nothing");
    stranger.cleanup(id).expect("and cleans up nothing");
    assert!(is_orphan(subject), "it is still there");
    subject.runtime().cleanup(id).expect("cleanup");
    assert!(!is_orphan(subject), "nothing is left");
}
