//! The plain log of the durable ceiling: one thread, one growing file, one fdatasync for all that
//! waits. There is no checksum, no index and no way back: it shows the price of being durable alone.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, Write},
    path::Path,
    sync::Arc,
    thread,
};

use anyhow::Context;
use bytes::Bytes;
use etcd_api::etcdserverpb::PutRequest;
use prost::Message;
use tokio::sync::{mpsc, oneshot};
use tonic::Status;

/// More than there are clients, so that none waits to be let in.
const APPENDS_MAX: usize = 8 * 1024;

/// Stops gathering and writes; far above what a thousand clients have in flight.
const BATCH_BYTES_MAX: usize = 16 * 1024 * 1024;

pub(super) struct Log {
    appends: mpsc::Sender<Append>,
}

struct Append {
    put: PutRequest,
    done: oneshot::Sender<Result<(), Arc<io::Error>>>,
}

struct Writer {
    file: File,
    appends: mpsc::Receiver<Append>,
    map: HashMap<Bytes, Bytes>,
    buffer: Vec<u8>,
    waiting: Vec<Append>,
}

// === impl Log ===

impl Log {
    pub(super) fn create(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join("log");
        fs::create_dir_all(folder)
            .and_then(|()| File::create(&path))
            .and_then(Self::start)
            .with_context(|| format!("cannot begin a log at {}", path.display()))
    }

    /// The thread ends with the last sender, or with the first failure, which is answered to all
    /// that wait.
    fn start(file: File) -> io::Result<Self> {
        let (sender, appends) = mpsc::channel(APPENDS_MAX);
        let mut writer =
            Writer { file, appends, map: HashMap::new(), buffer: Vec::new(), waiting: Vec::new() };
        thread::Builder::new().name("ceiling-log".to_owned()).spawn(move || writer.run())?;
        Ok(Self { appends: sender })
    }

    pub(super) async fn append(&self, put: PutRequest) -> Result<(), Status> {
        let ended = || Status::internal("the log has ended");
        let (done, outcome) = oneshot::channel();
        self.appends.send(Append { put, done }).await.map_err(|_closed| ended())?;
        let outcome = outcome.await.map_err(|_dropped| ended())?;
        outcome.map_err(|error| Status::internal(format!("cannot write the log: {error}")))
    }
}

// === impl Writer ===

impl Writer {
    fn run(&mut self) {
        while let Some(first) = self.appends.blocking_recv() {
            self.gather(first);
            let written = self.write().map_err(Arc::new);
            self.answer(&written);
            if written.is_err() {
                return;
            }
        }
    }

    fn write(&mut self) -> io::Result<()> {
        self.file.write_all(&self.buffer)?;
        self.file.sync_data()
    }

    /// Takes all that came while the last batch was written.
    fn gather(&mut self, first: Append) {
        self.buffer.clear();
        let mut next = Some(first);
        while let Some(append) = next {
            append
                .put
                .encode_length_delimited(&mut self.buffer)
                .expect("a vector grows to any message");
            self.waiting.push(append);
            let has_room = self.buffer.len() < BATCH_BYTES_MAX;
            next = if has_room { self.appends.try_recv().ok() } else { None };
        }
    }

    fn answer(&mut self, written: &Result<(), Arc<io::Error>>) {
        for Append { put, done } in self.waiting.drain(..) {
            self.map.insert(put.key, put.value);
            let _client_is_gone = done.send(written.clone());
        }
    }
}
