//! SQL: one statement with its arguments, one statement with many rows of them, or a script.

use std::{collections::VecDeque, sync::Arc};

use crate::{
    Client, ColumnType, Columns, DecodeError, Error, Row, Transaction, Value,
    connection::Connection,
    schema::column_type,
    wire::{
        op,
        pack::Packer,
        tuple::{Builder, Tuple},
        unpack::Unpacker,
    },
};

/// Rows the server sends at once.
const PAGE_ROWS: u32 = 1024;
/// Fields of a column's description without, and with, where it comes from.
const COLUMN_FIELDS: usize = 6;

/// What a statement gave. Rows come page by page; dropped early, the rest is never sent.
#[derive(Debug)]
pub struct ResultSet {
    connection: Arc<Connection>,
    columns: Columns,
    kinds: Vec<ColumnType>,
    rows: VecDeque<Row>,
    /// The server's number of what is left.
    cursor: Option<i64>,
    affected: i64,
    was_applied: bool,
}

// === impl Client ===

impl Client {
    /// Executes one statement. Its arguments stand for the `?` in it, in their order.
    pub async fn execute(
        &self,
        tx: Option<&Transaction>,
        statement: &str,
        arguments: &[Value],
    ) -> Result<ResultSet, Error> {
        self.execute_paged(tx, statement, arguments, PAGE_ROWS).await
    }

    /// The same, with the number of rows that come at once: small where rows are large.
    pub async fn execute_paged(
        &self,
        tx: Option<&Transaction>,
        statement: &str,
        arguments: &[Value],
        page_rows: u32,
    ) -> Result<ResultSet, Error> {
        let connection = self.connection_for(tx).await?;
        let mut packer = head(tx, page_rows);
        packer.string(statement).len(arguments.len());
        if !arguments.is_empty() {
            packer.binary(&tuple(arguments));
        }
        packer.int(connection.observed());
        let mut answer = connection.ask(op::SQL_EXEC, packer).await?;
        Ok(ResultSet::read(connection, &mut answer)?)
    }

    /// Executes one statement once for each row of arguments; how many rows each changed.
    pub async fn execute_batch(
        &self,
        tx: Option<&Transaction>,
        statement: &str,
        batch: &[Vec<Value>],
    ) -> Result<Vec<i64>, Error> {
        let Some(first) = batch.first() else { return Ok(Vec::new()) };
        let connection = self.connection_for(tx).await?;
        let mut packer = head(tx, PAGE_ROWS);
        // Not in pages: all of them are here.
        packer.string(statement).len(first.len()).len(batch.len()).bool(false);
        for arguments in batch {
            packer.binary(&tuple(arguments));
        }
        packer.int(connection.observed());
        let mut answer = connection.ask(op::SQL_EXEC_BATCH, packer).await?;
        for _ in ["cursor", "has rows", "has more", "was applied"] {
            answer.skip()?;
        }
        let count = answer.count("update counters")?;
        let counters: Result<Vec<i64>, DecodeError> =
            (0..count).map(|_| answer.long("an update counter")).collect();
        Ok(counters?)
    }

    /// Executes statements separated by semicolons, in their order. Several `CREATE` in one script
    /// take the cluster little longer than one.
    pub async fn execute_script(&self, script: &str) -> Result<(), Error> {
        let connection = self.connection().await?;
        let mut packer = Packer::new();
        properties(&mut packer, None);
        packer.string(script).len(0).int(connection.observed());
        connection.ask(op::SQL_EXEC_SCRIPT, packer).await.map(drop)
    }

    async fn connection_for(&self, tx: Option<&Transaction>) -> Result<Arc<Connection>, Error> {
        match tx {
            Some(tx) => Ok(Arc::clone(&tx.connection)),
            None => self.connection().await,
        }
    }
}

// === impl ResultSet ===

impl ResultSet {
    fn read(connection: Arc<Connection>, answer: &mut Unpacker) -> Result<Self, DecodeError> {
        let cursor = if answer.is_nil() { None } else { Some(answer.long("a cursor")?) };
        let has_rows = answer.bool("whether there are rows")?;
        answer.bool("whether there are more pages")?;
        let was_applied = answer.bool("whether it was applied")?;
        let affected = answer.long("how many rows were changed")?;
        let mut names = Vec::new();
        let mut kinds = Vec::new();
        for _ in 0..answer.count("columns")? {
            let (name, kind) = column(answer)?;
            names.push(name);
            kinds.push(kind);
        }
        let columns = Columns::new(names);
        let rows = VecDeque::new();
        let mut set = Self { connection, columns, kinds, rows, cursor, affected, was_applied };
        if has_rows {
            set.read_page(answer)?;
        }
        Ok(set)
    }

    fn read_page(&mut self, answer: &mut Unpacker) -> Result<(), DecodeError> {
        for _ in 0..answer.count("rows")? {
            let tuple = Tuple::new(answer.binary("a row")?, self.kinds.len())?;
            let values: Result<Vec<Value>, DecodeError> = (self.kinds.iter().enumerate())
                .map(|(index, kind)| tuple.value(index, *kind))
                .collect();
            self.rows.push_back(self.columns.row(values?));
        }
        Ok(())
    }

    #[must_use]
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// How many rows the statement changed; −1 if it is not of that kind.
    #[must_use]
    pub fn affected(&self) -> i64 {
        self.affected
    }

    /// Whether a conditional statement, such as `CREATE … IF NOT EXISTS`, did anything.
    #[must_use]
    pub fn was_applied(&self) -> bool {
        self.was_applied
    }

    /// The next row, from the server if it has to be.
    pub async fn next(&mut self) -> Result<Option<Row>, Error> {
        while self.rows.is_empty() {
            let Some(cursor) = self.cursor else { return Ok(None) };
            let mut packer = Packer::new();
            packer.int(cursor);
            let asked = self.connection.ask(op::SQL_CURSOR_NEXT_PAGE, packer).await;
            let mut answer = asked.inspect_err(|_error| self.cursor = None)?;
            self.read_page(&mut answer)?;
            if !answer.bool("whether there are more pages")? {
                self.cursor = None;
            }
        }
        Ok(self.rows.pop_front())
    }

    /// All rows that are left.
    pub async fn all(mut self) -> Result<Vec<Row>, Error> {
        let mut rows = Vec::new();
        while let Some(row) = self.next().await? {
            rows.push(row);
        }
        Ok(rows)
    }
}

impl Drop for ResultSet {
    fn drop(&mut self) {
        if let Some(cursor) = self.cursor {
            let mut packer = Packer::new();
            packer.int(cursor);
            self.connection.post(op::SQL_CURSOR_CLOSE, packer);
        }
    }
}

/// Transaction and properties, with which every statement begins.
fn head(tx: Option<&Transaction>, page_rows: u32) -> Packer {
    let mut packer = Packer::new();
    packer.optional(tx.map(Transaction::id));
    properties(&mut packer, Some(i64::from(page_rows)));
    packer
}

fn properties(packer: &mut Packer, page_rows: Option<i64>) {
    // Default schema, rows per page, two timeouts and the time zone.
    packer.nil().optional(page_rows).nil().nil().nil();
    // No further properties, as a count and a tuple.
    packer.len(0).binary(&Builder::new().finish());
}

fn tuple(arguments: &[Value]) -> bytes::Bytes {
    let mut builder = Builder::new();
    for argument in arguments {
        builder.argument(argument);
    }
    builder.finish()
}

fn column(answer: &mut Unpacker) -> Result<(String, ColumnType), DecodeError> {
    let fields = answer.count("fields of a column")?;
    let name = answer.string("the name of a column")?;
    answer.bool("whether a column is nullable")?;
    let kind = column_type(answer)?;
    answer.int("a scale")?;
    answer.int("a precision")?;
    answer.bool("whether the origin of a column is known")?;
    for _ in COLUMN_FIELDS..fields {
        answer.skip()?;
    }
    Ok((name, kind))
}
