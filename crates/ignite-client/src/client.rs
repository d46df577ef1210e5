//! The client: a connection to some node, and another when that is lost.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::sync::Mutex;

use crate::{
    Error, Mode, Options, Peer, Table, Transaction,
    connection::{Connection, Observed},
    wire::{pack::Packer, unpack::Unpacker},
};

/// A client of one cluster. Clones share its connection.
#[derive(Clone, Debug)]
pub struct Client {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    options: Arc<Options>,
    observed: Observed,
    /// Locked while somebody connects, so that all wait for one attempt.
    current: Mutex<Option<Arc<Connection>>>,
    /// The address that was used last.
    turn: AtomicUsize,
}

// === impl Client ===

impl Client {
    /// Connects to the first address that answers.
    pub async fn connect(options: Options) -> Result<Self, Error> {
        let client = Self {
            shared: Arc::new(Shared {
                options: Arc::new(options),
                observed: Arc::new(AtomicI64::new(0)),
                current: Mutex::new(None),
                turn: AtomicUsize::new(0),
            }),
        };
        client.connection().await?;
        Ok(client)
    }

    /// The node this client talks to now, connecting if it must.
    pub async fn peer(&self) -> Result<Peer, Error> {
        Ok(self.connection().await?.peer.clone())
    }

    /// Ends the connection to the node this client talks to, if there is one, and tells its address. The
    /// next request goes to another address, if there is one; whoever waits for an answer hears that the
    /// connection is lost.
    ///
    /// For a node that lives, which this client finds out by itself, but does nothing it is asked.
    pub async fn leave(&self) -> Option<String> {
        let current = self.shared.current.lock().await;
        let connection = current.as_ref().filter(|connection| connection.is_open())?;
        connection.end();
        Some(connection.address.clone())
    }

    /// A table by its name: `NAME` or `SCHEMA.NAME`, quoted where SQL would need it.
    ///
    /// # Errors
    ///
    /// [`Error::NoTable`] if there is none.
    pub async fn table(&self, name: &str) -> Result<Table, Error> {
        Table::find(self, name).await
    }

    /// Begins a transaction with the timeout that the cluster sets.
    pub async fn begin(&self, mode: Mode) -> Result<Transaction, Error> {
        self.begin_with_timeout(mode, Duration::ZERO).await
    }

    /// Begins a transaction that the server ends by itself after `timeout`.
    pub async fn begin_with_timeout(
        &self,
        mode: Mode,
        timeout: Duration,
    ) -> Result<Transaction, Error> {
        Transaction::begin(self.connection().await?, mode, timeout).await
    }

    pub(crate) async fn connection(&self) -> Result<Arc<Connection>, Error> {
        let shared = &self.shared;
        let mut current = shared.current.lock().await;
        let lost = match &*current {
            Some(connection) if connection.is_open() => return Ok(Arc::clone(connection)),
            lost => usize::from(lost.is_some()),
        };
        // A lost node is tried last.
        let first = shared.turn.load(Ordering::Relaxed) + lost;
        let (turn, connection) = self.connect_from(first).await?;
        shared.turn.store(turn, Ordering::Relaxed);
        let connection = Arc::new(connection);
        *current = Some(Arc::clone(&connection));
        Ok(connection)
    }

    async fn connect_from(&self, first: usize) -> Result<(usize, Connection), Error> {
        let Shared { options, observed, .. } = &*self.shared;
        let addresses = &options.addresses;
        let mut worst = None;
        for turn in (first..first + addresses.len()).map(|turn| turn % addresses.len()) {
            match Connection::open(&addresses[turn], options, Arc::clone(observed)).await {
                Ok(connection) => return Ok((turn, connection)),
                Err(error) => {
                    // A refusal says more than an address that does not answer.
                    if worst.as_ref().and_then(Error::server).is_none() {
                        worst = Some(error);
                    }
                }
            }
        }
        match worst {
            None => Err(Error::NoAddress),
            Some(error) if addresses.len() == 1 => Err(error),
            Some(source) => {
                Err(Error::NoneUsable { addresses: addresses.join(", "), source: Box::new(source) })
            }
        }
    }

    /// Asks what may be asked twice: when a connection is lost on the way, another node is asked.
    pub(crate) async fn ask_again(
        &self,
        op: i32,
        payload: impl Fn() -> Result<Packer, Error>,
    ) -> Result<Unpacker, Error> {
        let mut attempts_left = self.shared.options.addresses.len();
        loop {
            let outcome = self.connection().await?.ask(op, payload()?).await;
            match outcome {
                Err(Error::Lost { .. } | Error::Silent { .. }) if attempts_left > 0 => {
                    attempts_left -= 1;
                }
                outcome => return outcome,
            }
        }
    }
}

#[cfg(test)]
mod tests;
