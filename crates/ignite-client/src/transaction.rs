//! Transactions. One lives on the connection it was begun on, and ends with it.

use std::{sync::Arc, time::Duration};

use crate::{
    Error, ErrorCode,
    connection::Connection,
    wire::{op, pack::Packer},
};

/// Commit was refused, and for these reasons nothing of the transaction is left.
const SURELY_NOT_COMMITTED: [ErrorCode; 4] = [
    ErrorCode::LOCK_DENIED,
    ErrorCode::LOCK_TIMEOUT,
    // The schema changed under it.
    ErrorCode { group: 7, number: 11 },
    // It had been ended for taking too long.
    ErrorCode { group: 7, number: 16 },
];

/// A transaction under way. Dropped without [`commit`](Self::commit) it is rolled back.
#[derive(Debug)]
pub struct Transaction {
    pub(crate) connection: Arc<Connection>,
    id: i64,
    mode: Mode,
    is_finished: bool,
}

/// What a transaction may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Reads and writes, serializable, by locks.
    ReadWrite,
    /// Reads one snapshot, without locks: of all that this client has heard of, and possibly not
    /// of what others did since.
    Snapshot,
}

// === impl Transaction ===

impl Transaction {
    pub(crate) async fn begin(
        connection: Arc<Connection>,
        mode: Mode,
        timeout: Duration,
    ) -> Result<Self, Error> {
        let mut packer = Packer::new();
        let timeout_ms = i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX);
        packer.bool(mode == Mode::Snapshot).int(timeout_ms);
        if mode == Mode::Snapshot {
            packer.int(connection.observed());
        }
        let id = connection.ask(op::TX_BEGIN, packer).await?.long("a transaction's number")?;
        Ok(Self { connection, id, mode, is_finished: false })
    }

    /// The number that requests carry.
    pub(crate) fn id(&self) -> i64 {
        self.id
    }

    /// Makes everything durable and visible at once.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] when it may or may not have happened.
    pub async fn commit(mut self) -> Result<(), Error> {
        self.is_finished = true;
        let outcome = self.connection.ask(op::TX_COMMIT, self.payload()).await;
        match outcome {
            Ok(_) => Ok(()),
            Err(error) if self.mode == Mode::Snapshot || is_surely_not_committed(&error) => {
                Err(error)
            }
            Err(error) => Err(Error::Unknown(Box::new(error))),
        }
    }

    /// Undoes everything.
    pub async fn rollback(mut self) -> Result<(), Error> {
        self.is_finished = true;
        self.connection.ask(op::TX_ROLLBACK, self.payload()).await.map(drop)
    }

    fn payload(&self) -> Packer {
        let mut packer = Packer::new();
        packer.int(self.id);
        packer
    }
}

impl Drop for Transaction {
    /// Locks would stay until the transaction's timeout otherwise.
    fn drop(&mut self) {
        if !self.is_finished {
            self.connection.post(op::TX_ROLLBACK, self.payload());
        }
    }
}

fn is_surely_not_committed(error: &Error) -> bool {
    match error {
        Error::Server(server) => SURELY_NOT_COMMITTED.contains(&server.code),
        _ => false,
    }
}
