//! Drives an attempt that only seems to run: the shim's own decisions, on tokio's clock, with a fake
//! runtime. Records and logs are real.

use std::sync::Arc;

use tokio::time::sleep;
use tracing::warn;

use super::{Event, Inner, Order, attempt::Line};
use crate::{
    Boottime, Ended,
    boottime::wall_time,
    fake,
    log::{self, Sizes, Writer},
    record::{self, Record},
    runtime::{self, Wake},
    shim::{
        chain,
        session::{Over, Session},
        streams::Pipes,
    },
};

/// Why an attempt could not be simulated.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("the attempt cannot be recorded")]
    Record(#[source] record::Error),
    #[error("cannot begin the log")]
    Log(#[source] log::Error),
    #[error("no directory, or no pipes")]
    Io(#[from] std::io::Error),
    #[error("the runtime failed")]
    Runtime(#[source] runtime::Error),
}

pub(super) async fn drive(host: Arc<Inner>, machine: fake::Machine, order: Order, mut line: Line) {
    let path = host.places.record(order.id);
    let ended = match simulate(&host, &machine, &order, &mut line).await {
        Ok(ended) => ended,
        Err(error) => Ended::never_started(chain(&error)),
    };
    if let Err(error) = Record::open(&path).and_then(|record| record.end(&ended)) {
        warn!(id = %order.id, error = chain(&error), "the result is not kept on disk");
    }
    line.tell(Event::Ended(ended));
}

async fn simulate(
    host: &Inner,
    machine: &fake::Machine,
    order: &Order,
    line: &mut Line,
) -> Result<Ended, Error> {
    host.places.clear_attempt(order.id)?;
    Record::create(&host.places.record(order.id), &order.note).map_err(Error::Record)?;
    let dir = host.places.begin_attempt(order.id)?;
    let mut log = Writer::create(&dir, Sizes::default()).map_err(Error::Log)?;
    let (mut pipes, stdio) = Pipes::new(&order.spec.stdin)?;
    let mut session = Session::new(machine.runtime(), order.id, &order.spec);
    session.prepare(stdio).map_err(Error::Runtime)?;
    line.tell(Event::Created);
    let over = run(host, machine, &mut session, line).await.map_err(Error::Runtime)?;
    pipes.drain(&mut log)?;
    Ok(Ended { outcome: over.outcome, usage: over.usage, log: log.end(wall_time()) })
}

async fn run(
    host: &Inner,
    machine: &fake::Machine,
    session: &mut Session,
    line: &mut Line,
) -> Result<Over, runtime::Error> {
    if let Some(grace) = line.stopped() {
        session.on_stop(grace, machine.now());
    }
    if let Some(over) = session.start(machine.now(), &|| host.deadline.get())? {
        return Ok(over);
    }
    line.tell(Event::Started);
    loop {
        if let Some(over) = session.turn(machine.now(), host.deadline.get())? {
            return Ok(over);
        }
        let wake_at = wake_at(session, host.deadline.get());
        tokio::select! {
            () = sleep(machine.now().until(wake_at)) => {}
            grace = line.stop() => session.on_stop(grace, machine.now()),
        }
    }
}

fn wake_at(session: &Session, deadline: Boottime) -> Boottime {
    match session.wake() {
        Wake::At(at) => session.wake_at(deadline).min(at),
        Wake::Readable(_) => unreachable!("a fake has nothing to read"),
    }
}
