//! Opening a data directory: takes it, and gets rid of what an earlier daemon left.
//!
//! The order matters. First no shim can begin or go on; then what their commands left is killed; only
//! then are results read, because only then does a missing one mean that there is none.

use std::{
    fs::{self, File},
    io,
    path::Path,
    time::Duration,
};

use parking_lot::Mutex;
use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
    process::geteuid,
};
use uuid::Uuid;

use super::{Engine, Error, Inner, Leftover, Leftovers, Machinery, Options};
use crate::{
    AttemptId, Boottime, Deadline, Kind, Runtime,
    places::{self, Places, unless_missing},
    record::Record,
    runtime,
    shim::{chain, nursery::Nursery, program::Program},
};

/// Killed processes that are not gone after this long keep the host from opening.
const LEFTOVERS_MAX: Duration = Duration::from_secs(10);

pub(super) fn open(options: &Options) -> Result<(Inner, Leftovers), Error> {
    let path = &options.data_dir;
    let on_create = |source| Error::Create { path: path.clone(), source };
    places::make_private(path).map_err(on_create)?;
    let data_dir = path.canonicalize().map_err(on_create)?;
    let places = Places::new(&data_dir);
    let lock = take_lock(&places.lock())?;
    places.create().map_err(on_create)?;
    let host_id = host_id(&places.host_id(), options.fresh_host_id)?;
    let site = options.site(host_id, data_dir);
    let machinery = match &options.engine {
        Engine::Shim { kind, program } => {
            kind.settle(&site).map_err(Error::Settle)?;
            let program = Program::load(program).map_err(Error::Program)?;
            Machinery::Shim { kind: *kind, nursery: Nursery::new(program) }
        }
        Engine::Fake(machine) => Machinery::Fake(machine.clone()),
    };
    let inner = Inner {
        site,
        places,
        machinery,
        deadline: Deadline::new().map_err(Error::Deadline)?,
        unwanted: Mutex::default(),
        _lock: lock,
    };
    let leftovers = recover(&inner)?;
    Ok((inner, leftovers))
}

fn take_lock(path: &Path) -> Result<File, Error> {
    let on_lock = |source: io::Error| Error::Lock { path: path.to_owned(), source };
    let file = File::options().create(true).append(true).open(path).map_err(on_lock)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(Errno::WOULDBLOCK) => Err(Error::InUse { path: path.to_owned() }),
        Err(errno) => Err(on_lock(errno.into())),
    }
}

fn host_id(path: &Path, fresh: Uuid) -> Result<Uuid, Error> {
    let read = unless_missing(fs::read_to_string(path));
    match read.map_err(|source| Error::Read { path: path.to_owned(), source })? {
        Some(text) => Uuid::try_parse(text.trim_end())
            .map_err(|source| Error::HostId { path: path.to_owned(), source }),
        None => {
            let written = places::replace(path, format!("{fresh}\n").as_bytes());
            written.map_err(|source| Error::Write { path: path.to_owned(), source })?;
            Ok(fresh)
        }
    }
}

fn recover(host: &Inner) -> Result<Leftovers, Error> {
    let path = host.places.records();
    let recorded = host.places.recorded().map_err(|source| Error::Read { path, source })?;
    for id in &recorded {
        withdraw(&host.places.record(*id))?;
    }
    for runtime in runtimes(host) {
        kill_orphans(runtime).map_err(Error::Leftovers)?;
    }
    let mut leftovers = Leftovers { remembered: remembered(&host.places)?, ..Leftovers::default() };
    for id in recorded {
        match read_end(host, id)? {
            Some(leftover) => leftovers.ended.push(leftover),
            None => leftovers.killed.push(id),
        }
    }
    Ok(leftovers)
}

fn withdraw(path: &Path) -> Result<(), Error> {
    Record::open(path).and_then(|record| record.withdraw()).map_err(Error::Record)
}

/// All that may have left something: the runtime may have been another one before.
fn runtimes(host: &Inner) -> Vec<Box<dyn Runtime>> {
    match &host.machinery {
        Machinery::Fake(machine) => vec![machine.runtime()],
        Machinery::Shim { .. } => {
            let kinds = [Kind::Process, Kind::Native];
            let usable =
                kinds.into_iter().filter(|kind| *kind == Kind::Process || geteuid().is_root());
            usable.map(|kind| kind.open(&host.site)).collect()
        }
    }
}

fn kill_orphans(mut runtime: Box<dyn Runtime>) -> Result<(), runtime::Error> {
    let until = Boottime::now() + LEFTOVERS_MAX;
    for id in runtime.list_orphans()? {
        while let Err(error) = runtime.cleanup(id) {
            let is_alive = matches!(error, runtime::Error::StillAlive { .. });
            if !is_alive || Boottime::now() >= until {
                return Err(error);
            }
        }
        tracing::info!(%id, "what an earlier daemon left is gone");
    }
    Ok(())
}

fn remembered(places: &Places) -> Result<Option<Vec<u8>>, Error> {
    let path = places.remembered();
    unless_missing(fs::read(&path)).map_err(|source| Error::Read { path, source })
}

/// The result of an attempt. Without one its record means nothing any more, and its log ends here.
fn read_end(host: &Inner, id: AttemptId) -> Result<Option<Leftover>, Error> {
    let path = host.places.record(id);
    let content = Record::open(&path).and_then(|record| record.read()).map_err(Error::Record)?;
    if let Some(ended) = content.ended {
        return Ok(Some(Leftover { id, note: content.note, ended }));
    }
    if let Err(error) = super::driver::end_log(host, id) {
        tracing::warn!(%id, error = chain(&error), "the log has no end");
    }
    fs::remove_file(&path).map_err(|source| Error::Remove { path, source })?;
    Ok(None)
}
