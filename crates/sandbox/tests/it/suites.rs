//! Every runtime holds the obligations of the trait.

use std::process::Command;

use sandbox::{
    AttemptId, Boottime, Runtime, User,
    fake::Machine,
    runtime::{
        Wake,
        suite::{self, Act, Subject},
    },
};
use uuid::Uuid;

use crate::scene::program;

mod process {
    sandbox::runtime_suite!(super::holds_for_process);
}

mod fake {
    sandbox::runtime_suite!(super::holds_for_fake);
}

fn holds_for_process(obligation: &str) {
    holds_in_own_process("process", obligation);
}

/// Shims have one thread, tests have many.
pub(crate) fn holds_in_own_process(kind: &str, obligation: &str) {
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new(program())
        .args(["suite", "obligation", kind])
        .arg(dir.path())
        .arg(obligation)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn holds_for_fake(obligation: &str) {
    let tokio = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let _entered = tokio.enter();
    let machine = Machine::new(Boottime::default());
    suite::check(obligation, &mut Fake { tokio: &tokio, machine, begun: 0 });
}

struct Fake<'a> {
    tokio: &'a tokio::runtime::Runtime,
    machine: Machine,
    begun: u32,
}

// === impl Fake ===

impl Subject for Fake<'_> {
    fn runtime(&self) -> Box<dyn Runtime> {
        self.machine.runtime()
    }

    fn stranger(&self) -> Box<dyn Runtime> {
        Machine::new(Boottime::default()).runtime()
    }

    fn begin(&mut self) -> AttemptId {
        self.begun += 1;
        AttemptId { task: Uuid::nil(), number: self.begun }
    }

    fn argv(&self, act: Act) -> Vec<String> {
        let words: &[&str] = match act {
            Act::Speak => &["print", "out", "complain", "err", "exit", "7"],
            Act::Rest => &["sleep", "1000"],
            Act::Resist => &["print", "ready", "print", "term", "stubborn", "sleep", "1000"],
            Act::LeaveChild => &["exit", "7"],
            Act::Show => &[
                "cat", "show", "env", "GIVEN", "print", "unset", "show", "workdir", "show", "user",
            ],
            Act::Nonsense => &["unstartable"],
        };
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn user(&self, asked: User) -> User {
        asked
    }

    fn wait(&self, runtime: &dyn Runtime) {
        let Wake::At(at) = runtime.wake() else { panic!("nothing to read on a fake machine") };
        self.tokio.block_on(tokio::time::advance(self.machine.now().until(at)));
    }

    fn abandon(&mut self) -> AttemptId {
        let id = self.begin();
        let mut runtime = self.runtime();
        let null = || std::fs::File::options().read(true).write(true).open("/dev/null").unwrap();
        let stdio = sandbox::runtime::Stdio {
            stdin: null().into(),
            stdout: null().into(),
            stderr: null().into(),
        };
        runtime.prepare(id, &crate::scene::spec(&["sleep", "1000"]), stdio).unwrap();
        runtime.start(&|| Boottime::NEVER).unwrap();
        id
    }
}
