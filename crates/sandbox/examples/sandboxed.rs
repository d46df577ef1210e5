//! The processes of this crate's tests: a shim, a process for the suite, and a small daemon that tests
//! kill and stop.

use std::{
    env,
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use sandbox::{AttemptId, Boottime, Event, Host, Kind, Options, Order, Spec, runtime::suite, shim};
use uuid::Uuid;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some(shim::ARGUMENT) => shim::main(),
        Some("suite") => suite::main(&arguments[1..]),
        Some("daemon") => daemon(&arguments[1..]),
        _ => panic!("started as {arguments:?}"),
    }
}

/// `daemon KIND DIR DEADLINE_MS SPEC`: runs one attempt, tells its events, and stays.
fn daemon(arguments: &[String]) -> ExitCode {
    let [kind, dir, deadline_ms, spec] = arguments else { panic!("started as {arguments:?}") };
    let kind = if kind == "native" { Kind::Native } else { Kind::Process };
    let spec: Spec = serde_json::from_str(spec).expect("a spec");
    let deadline = Duration::from_millis(deadline_ms.parse().expect("a number"));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let options = Options::new(PathBuf::from(dir), Uuid::new_v4(), kind);
        let (host, _) = Host::open(options).await.expect("open");
        host.deadline().set(Boottime::now() + deadline);
        let id = AttemptId { task: Uuid::nil(), number: 1 };
        let mut attempt = host.start(Order { id, spec, note: b"of the daemon".to_vec() });
        while let Some(event) = attempt.next().await {
            say(match event {
                Event::Created => "created",
                Event::Started => "started",
                Event::Ended(_) => "ended",
            });
        }
        std::future::pending::<()>().await;
    });
    ExitCode::SUCCESS
}

fn say(word: &str) {
    let mut stdout = io::stdout();
    writeln!(stdout, "{word}").and_then(|()| stdout.flush()).expect("somebody listens");
}
