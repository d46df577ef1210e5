//! The plain log of the durable ceiling: one thread, one growing file, one fdatasync for all that
//! waits. There is no checksum, no index and no way back: it shows the price of being durable alone.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, Write},
    path::Path,
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
    /// Dropped without a word if the log failed.
    done: oneshot::Sender<()>,
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

    /// The thread ends with the last sender, or with the first failure, which its clients see.
    fn start(file: File) -> io::Result<Self> {
        let (sender, appends) = mpsc::channel(APPENDS_MAX);
        let mut writer =
            Writer { file, appends, map: HashMap::new(), buffer: Vec::new(), waiting: Vec::new() };
        thread::Builder::new().name("ceiling-log".to_owned()).spawn(move || writer.run())?;
        Ok(Self { appends: sender })
    }

    pub(super) async fn append(&self, put: PutRequest) -> Result<(), Status> {
        let failed = || Status::internal("the log failed");
        let (done, is_done) = oneshot::channel();
        self.appends.send(Append { put, done }).await.map_err(|_closed| failed())?;
        is_done.await.map_err(|_dropped| failed())
    }
}

// === impl Writer ===

impl Writer {
    fn run(&mut self) -> io::Result<()> {
        while let Some(first) = self.appends.blocking_recv() {
            self.gather(first);
            self.file.write_all(&self.buffer)?;
            self.file.sync_data()?;
            self.answer();
        }
        Ok(())
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

    fn answer(&mut self) {
        for Append { put, done } in self.waiting.drain(..) {
            self.map.insert(put.key, put.value);
            // A client that went away needs no answer.
            let _client_is_gone = done.send(());
        }
    }
}
