//! The grid as this crate sees it: a client, its four tables, and who writes here.

use std::time::Duration;

use ignite_client::{Client, Mode, Row, Table, Transaction};
use tokio::{
    sync::Mutex,
    time::{Instant, timeout},
};

use crate::{
    Error, Options,
    answers::{Answers, SILENCE_MAX},
    error::Step,
    head::{self, Head},
    layout::{FORMAT, HEAD_ID, Layout, check_schema},
};

/// How often a write that other writers got in the way of, or that a lost node interrupted before
/// its commit, is tried from its start. With the pauses below, a primary that died can be replaced
/// meanwhile, which takes Ignite five seconds and more.
pub(crate) const ATTEMPTS_MAX: u32 = 40;
const PAUSE_FIRST: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(crate) struct Grid {
    pub(crate) client: Client,
    pub(crate) layout: Layout,
    pub(crate) schema: String,
    pub(crate) head: Table,
    pub(crate) history: Table,
    pub(crate) kv: Table,
    pub(crate) meta: Table,
    pub(crate) members: Table,
    /// One write at a time from here: two would only take each other's locks.
    pub(crate) writer: Mutex<Writer>,
    /// Of the node that is asked how things stand.
    answers: parking_lot::Mutex<Answers>,
}

/// What this process knows as a writer.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    /// The head as this process left it; unknown after any doubt.
    pub(crate) head: Option<Head>,
    /// Set for ever after a write that failed.
    pub(crate) is_stopped: bool,
}

// === impl Grid ===

impl Grid {
    pub(crate) async fn open(client: Client, options: &Options) -> Result<Self, Error> {
        check_schema(&options.schema)?;
        let schema = options.schema.clone();
        let table = async |name: &str| match client.table(&format!("{schema}.{name}")).await {
            Err(ignite_client::Error::NoTable { .. }) if name == "HEAD" => {
                Err(Error::NotThere { schema: schema.clone() })
            }
            Err(ignite_client::Error::NoTable { name }) => {
                let what = format!("{name} is missing beside HEAD");
                Err(Error::Foreign { schema: schema.clone(), what })
            }
            found => found.step("find the journal's tables"),
        };
        let (head, history) = (table("HEAD").await?, table("HISTORY").await?);
        let (kv, meta) = (table("KV").await?, table("META").await?);
        let members = table("MEMBERS").await?;
        let grid = Self {
            layout: Layout::new(),
            schema: options.schema.clone(),
            head,
            history,
            kv,
            meta,
            members,
            writer: Mutex::new(Writer::default()),
            answers: parking_lot::Mutex::default(),
            client,
        };
        grid.check_format().await?;
        Ok(grid)
    }

    async fn check_format(&self) -> Result<(), Error> {
        let schema = self.schema.clone();
        let found = self.head.get(None, &self.head_key()).await;
        // A table called HEAD that has other columns is somebody else's.
        let found = match found {
            Err(
                error @ (ignite_client::Error::NoColumn { .. }
                | ignite_client::Error::WrongType { .. }
                | ignite_client::Error::NoKey { .. }),
            ) => return Err(Error::Foreign { schema, what: error.to_string() }),
            found => found.step("read HEAD")?,
        };
        let Some(row) = found else { return Err(Error::NotThere { schema }) };
        let format = head::format(&row)
            .map_err(|error| Error::Foreign { schema: schema.clone(), what: error.to_string() })?;
        if format != FORMAT {
            return Err(Error::Format { schema, found: format, supported: FORMAT });
        }
        Ok(())
    }

    fn head_key(&self) -> Row {
        self.layout.head_key.row([HEAD_ID.into()])
    }

    /// The head at its primary: all that was acknowledged anywhere before the call.
    pub(crate) async fn read_head(&self, tx: Option<&Transaction>) -> Result<Head, GridError> {
        match self.head.get(tx, &self.head_key()).await {
            Ok(Some(row)) => Head::from_row(&row).map_err(GridError::Bad),
            Ok(None) => Err(GridError::Bad(Error::NotThere { schema: self.schema.clone() })),
            Err(source) => Err(GridError::Client(source)),
        }
    }

    pub(crate) async fn head_now(&self) -> Result<Head, Error> {
        self.read_head(None).await.map_err(|error| error.into_error("read HEAD"))
    }

    /// The same for whoever asks again and again: a node that does not answer is left in time.
    pub(crate) async fn head_watched(&self) -> Result<Head, Error> {
        let asked = Instant::now();
        let told = timeout(SILENCE_MAX, self.head_now()).await;
        let told = told.unwrap_or(Err(Error::NoAnswer { waited: SILENCE_MAX }));
        let is_left = match &told {
            Err(Error::Grid { .. } | Error::NoAnswer { .. }) => {
                self.answers.lock().on_failure(asked, Instant::now())
            }
            _ => {
                self.answers.lock().on_answer();
                false
            }
        };
        if is_left && let Some(node) = self.client.leave().await {
            tracing::warn!(node, "the node does not answer for the grid, another one is asked");
        }
        told
    }

    /// The head once no transaction is under way that could still change it: its lock is waited for.
    pub(crate) async fn head_settled(&self) -> Result<Head, Error> {
        let mut attempts = Attempts::default();
        loop {
            match self.read_locked().await {
                Ok(head) => return Ok(head),
                Err(error) => attempts.go_on(error, "read HEAD under its lock").await?,
            }
        }
    }

    async fn read_locked(&self) -> Result<Head, GridError> {
        let tx = self.client.begin(Mode::ReadWrite).await?;
        let head = self.read_head(Some(&tx)).await?;
        tx.rollback().await?;
        Ok(head)
    }
}

/// A failure inside a transaction, before anybody decided what it means.
#[derive(Debug)]
pub(crate) enum GridError {
    Client(ignite_client::Error),
    Bad(Error),
}

// === impl GridError ===

impl From<ignite_client::Error> for GridError {
    fn from(error: ignite_client::Error) -> Self {
        Self::Client(error)
    }
}

impl GridError {
    pub(crate) fn into_error(self, step: &'static str) -> Error {
        match self {
            Self::Client(source) => Err::<(), _>(source).step(step).expect_err("it is an error"),
            Self::Bad(error) => error,
        }
    }
}

/// Counts how often something was tried, and pauses longer each time.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    made: u32,
}

// === impl Attempts ===

impl Attempts {
    /// Waits before the next attempt, or gives up: at once when another attempt cannot help.
    pub(crate) async fn go_on(
        &mut self,
        error: GridError,
        step: &'static str,
    ) -> Result<(), Error> {
        let source = match error {
            GridError::Client(source) if can_pass(&source) => source,
            error => return Err(error.into_error(step)),
        };
        self.made += 1;
        if self.made >= ATTEMPTS_MAX {
            if source.is_conflict() {
                return Err(Error::Contended { attempts: self.made, source });
            }
            return Err(GridError::Client(source).into_error(step));
        }
        tracing::debug!(step, attempt = self.made, error = %source, "tried again");
        self.sleep().await;
        Ok(())
    }

    /// The same for what may be done again whatever became of it.
    pub(crate) async fn pause<E>(&mut self, error: E) -> Result<(), E> {
        self.made += 1;
        if self.made >= ATTEMPTS_MAX {
            return Err(error);
        }
        self.sleep().await;
        Ok(())
    }

    async fn sleep(&self) {
        let pause = PAUSE_FIRST.saturating_mul(1 << self.made.min(10)).min(PAUSE_MAX);
        tokio::time::sleep(pause).await;
    }
}

/// Whether what failed may succeed later, nothing of it having happened. The client's errors for
/// wrong words and wrong types never do.
fn can_pass(error: &ignite_client::Error) -> bool {
    use ignite_client::Error as Client;
    if error.is_wrong_credentials() {
        return false;
    }
    match error {
        Client::Connect { .. }
        | Client::Silent { .. }
        | Client::NoGreeting { .. }
        | Client::Refused { .. }
        | Client::NoneUsable { .. }
        | Client::Lost { .. } => true,
        Client::Server(server) => PASSING_GROUPS.contains(&server.code.group),
        _ => false,
    }
}

/// Groups of Ignite's errors that are about moments: transactions, replicas, zones without a
/// primary, the network, placement.
const PASSING_GROUPS: [u16; 5] = [7, 8, 10, 11, 18];
