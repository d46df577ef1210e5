//! What every runtime must do, as tests: functions per obligation of [`Runtime`].
//!
//! A runtime has a [`Subject`], and [`runtime_suite!`](crate::runtime_suite) makes a test of each
//! obligation. Runtimes of real processes change the process they run in and can run one attempt in it,
//! so each of their obligations is checked in a process of its own: [`main`] is what it does.

mod obligations;
mod on_machine;
mod trial;

use std::process::ExitCode;

pub use on_machine::OnMachine;

use super::Runtime;
use crate::{AttemptId, User};

/// One way of running commands, ready to be tried.
pub trait Subject {
    /// A fresh runtime, as any process of the same site would make it.
    fn runtime(&self) -> Box<dyn Runtime>;

    /// One of another site on the same machine.
    fn stranger(&self) -> Box<dyn Runtime>;

    /// A new attempt, which this process is going to run.
    fn begin(&mut self) -> AttemptId;

    /// The words for it.
    fn argv(&self, act: Act) -> Vec<String>;

    /// Whose processes commands are if they are asked to be this user's.
    fn user(&self, asked: User) -> User;

    /// Lets time pass until it is worth asking the runtime again.
    fn wait(&self, runtime: &dyn Runtime);

    /// An attempt that rests, left running by a process that was killed.
    fn abandon(&mut self) -> AttemptId;
}

/// What commands of the suite do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Exits with 7 after writing `out` and `err`, a line each, to its streams.
    Speak,
    /// Rests until it is ended.
    Rest,
    /// Writes `ready`, answers TERM with `term` and rests on, with children that rest too.
    Resist,
    /// Leaves a child behind that holds its streams, and exits with 7.
    LeaveChild,
    /// Writes its input, the variable `GIVEN`, the variable `HOME` or else `unset`, its directory and
    /// its user as `UID:GID`, a line each.
    Show,
    /// Is no program.
    Nonsense,
}

/// Makes a test of every obligation. The argument is a function that takes the name of an obligation
/// and sees that it is held.
#[macro_export]
macro_rules! runtime_suite {
    ($holds:path) => {
        $crate::runtime_suite!(@each $holds;
            nothing_runs_before_start
            what_cannot_run_never_started
            streams_end_with_the_attempt
            an_attempt_ends_with_its_last_process
            term_ends_a_command_that_does_not_mind
            term_may_be_handled_and_kill_may_not
            a_command_is_as_it_was_asked_for
            consumption_is_known_until_cleanup
            anybody_cleans_up_and_again
            orphans_are_found_by_their_own_site
        );
    };
    (@each $holds:path; $($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                $holds(stringify!($name));
            }
        )*
    };
}

/// Checks one obligation, by its name.
///
/// # Panics
///
/// If it does not hold, with what was wrong; or if there is none of that name.
pub fn check(name: &str, subject: &mut impl Subject) {
    match name {
        "nothing_runs_before_start" => obligations::nothing_runs_before_start(subject),
        "what_cannot_run_never_started" => obligations::what_cannot_run_never_started(subject),
        "streams_end_with_the_attempt" => obligations::streams_end_with_the_attempt(subject),
        "an_attempt_ends_with_its_last_process" => {
            obligations::an_attempt_ends_with_its_last_process(subject);
        }
        "term_ends_a_command_that_does_not_mind" => {
            obligations::term_ends_a_command_that_does_not_mind(subject);
        }
        "term_may_be_handled_and_kill_may_not" => {
            obligations::term_may_be_handled_and_kill_may_not(subject);
        }
        "a_command_is_as_it_was_asked_for" => {
            obligations::a_command_is_as_it_was_asked_for(subject);
        }
        "consumption_is_known_until_cleanup" => {
            obligations::consumption_is_known_until_cleanup(subject);
        }
        "anybody_cleans_up_and_again" => obligations::anybody_cleans_up_and_again(subject),
        "orphans_are_found_by_their_own_site" => {
            obligations::orphans_are_found_by_their_own_site(subject);
        }
        other => panic!("there is no obligation {other}"),
    }
}

/// What a process of its own does for the suite; the arguments are those after the program's name.
///
/// `obligation KIND DIR NAME` checks one; `abandon KIND DIR ATTEMPT` starts an attempt and waits to be
/// killed.
///
/// # Panics
///
/// If an obligation does not hold, or the arguments make no sense.
#[must_use]
pub fn main(arguments: &[String]) -> ExitCode {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["obligation", kind, dir, name] => check(name, &mut OnMachine::new(kind, dir.as_ref())),
        ["abandon", kind, dir, id] => OnMachine::new(kind, dir.as_ref()).rest(id),
        _ => panic!("what the suite's process should do is not clear from {words:?}"),
    }
    ExitCode::SUCCESS
}
