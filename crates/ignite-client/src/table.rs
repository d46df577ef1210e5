//! Tables by key: single rows and many at once, inside a transaction or each call by itself.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

use crate::{
    Client, Error, ErrorCode, Row, Transaction,
    schema::{Part, Schema},
    wire::{op, pack::Packer, unpack::Unpacker},
};

/// A table of the cluster. Clones share what is known of its columns.
///
/// A call without a transaction is atomic by itself for one row. Rows are found by all columns of their
/// key; other columns of a row that names a key are ignored.
#[derive(Clone, Debug)]
pub struct Table {
    client: Client,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    id: i32,
    name: String,
    schemas: Mutex<Schemas>,
}

#[derive(Debug)]
struct Schemas {
    newest: Arc<Schema>,
    /// Rows may come back at versions that are not the newest.
    others: HashMap<i32, Arc<Schema>>,
}

/// A request: the operation, its rows, and which of their columns it is about.
struct Call<'a> {
    op: i32,
    part: Part,
    rows: &'a [&'a Row],
    /// Whether the number of rows is written before them.
    is_counted: bool,
}

// === impl Table ===

impl Table {
    pub(crate) async fn find(client: &Client, name: &str) -> Result<Self, Error> {
        let payload = || {
            let mut packer = Packer::new();
            packer.string(name);
            Ok(packer)
        };
        let mut answer = client.ask_again(op::TABLE_GET, payload).await?;
        if answer.is_nil() {
            return Err(Error::NoTable { name: name.to_owned() });
        }
        let id = answer.int("the number of a table")?;
        let newest = schema(client, id, None).await?;
        let schemas = Mutex::new(Schemas { newest, others: HashMap::new() });
        let shared = Arc::new(Shared { id, name: name.to_owned(), schemas });
        Ok(Self { client: client.clone(), shared })
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// The row of this key.
    pub async fn get(&self, tx: Option<&Transaction>, key: &Row) -> Result<Option<Row>, Error> {
        let mut answer = self.one(op::TUPLE_GET, Part::Key, tx, key).await?;
        let schema = self.schema_of(&mut answer).await?;
        if answer.is_nil() { Ok(None) } else { Ok(Some(schema.read_row(Part::All, &mut answer)?)) }
    }

    /// The rows of these keys, in their order.
    pub async fn get_all(
        &self,
        tx: Option<&Transaction>,
        keys: &[Row],
    ) -> Result<Vec<Option<Row>>, Error> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let mut answer = self.many(op::TUPLE_GET_ALL, Part::Key, tx, keys).await?;
        let schema = self.schema_of(&mut answer).await?;
        let mut rows = Vec::new();
        for _ in 0..answer.count("rows")? {
            let is_there = answer.bool("whether there is a row")?;
            rows.push(if is_there { Some(schema.read_row(Part::All, &mut answer)?) } else { None });
        }
        Ok(rows)
    }

    /// Writes a row, whether or not there is one of its key.
    pub async fn upsert(&self, tx: Option<&Transaction>, row: &Row) -> Result<(), Error> {
        self.one(op::TUPLE_UPSERT, Part::All, tx, row).await.map(drop)
    }

    pub async fn upsert_all(&self, tx: Option<&Transaction>, rows: &[Row]) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        self.many(op::TUPLE_UPSERT_ALL, Part::All, tx, rows).await.map(drop)
    }

    /// Writes a row unless there is one of its key; whether it did.
    pub async fn insert(&self, tx: Option<&Transaction>, row: &Row) -> Result<bool, Error> {
        let mut answer = self.one(op::TUPLE_INSERT, Part::All, tx, row).await?;
        Self::done(&mut answer)
    }

    /// Writes those rows of whose keys there are none, and returns the others.
    pub async fn insert_all(
        &self,
        tx: Option<&Transaction>,
        rows: &[Row],
    ) -> Result<Vec<Row>, Error> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let mut answer = self.many(op::TUPLE_INSERT_ALL, Part::All, tx, rows).await?;
        self.rows(Part::All, &mut answer).await
    }

    /// Writes `new` if the row of its key is `old` in every column; whether it did.
    pub async fn replace_exact(
        &self,
        tx: Option<&Transaction>,
        old: &Row,
        new: &Row,
    ) -> Result<bool, Error> {
        let rows = [old, new];
        let call =
            Call { op: op::TUPLE_REPLACE_EXACT, part: Part::All, rows: &rows, is_counted: false };
        let mut answer = self.ask(tx, &call).await?;
        Self::done(&mut answer)
    }

    /// Deletes the row of this key; whether there was one.
    pub async fn delete(&self, tx: Option<&Transaction>, key: &Row) -> Result<bool, Error> {
        let mut answer = self.one(op::TUPLE_DELETE, Part::Key, tx, key).await?;
        Self::done(&mut answer)
    }

    /// Deletes the rows of these keys, and returns the keys there were none of.
    pub async fn delete_all(
        &self,
        tx: Option<&Transaction>,
        keys: &[Row],
    ) -> Result<Vec<Row>, Error> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let mut answer = self.many(op::TUPLE_DELETE_ALL, Part::Key, tx, keys).await?;
        self.rows(Part::Key, &mut answer).await
    }

    fn done(answer: &mut Unpacker) -> Result<bool, Error> {
        answer.int("a schema version")?;
        Ok(answer.bool("whether it was done")?)
    }

    async fn rows(&self, part: Part, answer: &mut Unpacker) -> Result<Vec<Row>, Error> {
        let schema = self.schema_of(answer).await?;
        let count = answer.count("rows")?;
        let rows: Result<Vec<Row>, _> = (0..count).map(|_| schema.read_row(part, answer)).collect();
        Ok(rows?)
    }

    async fn one(
        &self,
        op: i32,
        part: Part,
        tx: Option<&Transaction>,
        row: &Row,
    ) -> Result<Unpacker, Error> {
        self.ask(tx, &Call { op, part, rows: &[row], is_counted: false }).await
    }

    async fn many(
        &self,
        op: i32,
        part: Part,
        tx: Option<&Transaction>,
        rows: &[Row],
    ) -> Result<Unpacker, Error> {
        let rows: Vec<&Row> = rows.iter().collect();
        self.ask(tx, &Call { op, part, rows: &rows, is_counted: true }).await
    }

    /// Asks, and once more if the columns turn out to have changed: such a request did nothing.
    async fn ask(&self, tx: Option<&Transaction>, call: &Call<'_>) -> Result<Unpacker, Error> {
        let asked = self.ask_once(tx, call).await;
        match &asked {
            Err(Error::Server(error)) if error.code == ErrorCode::SCHEMA_VERSION_MISMATCH => {
                let expected = error.schema_expected;
                let newest = schema(&self.client, self.shared.id, expected).await?;
                self.shared.schemas.lock().newest = newest;
                self.ask_once(tx, call).await
            }
            _ => asked,
        }
    }

    async fn ask_once(&self, tx: Option<&Transaction>, call: &Call<'_>) -> Result<Unpacker, Error> {
        let payload = || self.payload(tx, call);
        match tx {
            Some(tx) => tx.connection.ask(call.op, payload()?).await,
            // Only what changes nothing may be asked twice.
            None if call.op == op::TUPLE_GET || call.op == op::TUPLE_GET_ALL => {
                self.client.ask_again(call.op, payload).await
            }
            None => self.client.connection().await?.ask(call.op, payload()?).await,
        }
    }

    fn payload(&self, tx: Option<&Transaction>, call: &Call<'_>) -> Result<Packer, Error> {
        let schema = Arc::clone(&self.shared.schemas.lock().newest);
        let mut packer = Packer::new();
        packer.int(i64::from(self.shared.id));
        packer.optional(tx.map(Transaction::id)).int(i64::from(schema.version));
        if call.is_counted {
            packer.len(call.rows.len());
        }
        for row in call.rows {
            schema.write(&self.shared.name, row, call.part, &mut packer)?;
        }
        Ok(packer)
    }

    /// The schema an answer says it is written by.
    async fn schema_of(&self, answer: &mut Unpacker) -> Result<Arc<Schema>, Error> {
        let version = answer.int("a schema version")?;
        {
            let schemas = self.shared.schemas.lock();
            if schemas.newest.version == version {
                return Ok(Arc::clone(&schemas.newest));
            }
            if let Some(schema) = schemas.others.get(&version) {
                return Ok(Arc::clone(schema));
            }
        }
        let found = schema(&self.client, self.shared.id, Some(version)).await?;
        self.shared.schemas.lock().others.insert(version, Arc::clone(&found));
        Ok(found)
    }
}

/// One version of a table's schema; the newest if none is named.
async fn schema(client: &Client, id: i32, version: Option<i32>) -> Result<Arc<Schema>, Error> {
    let payload = || {
        let mut packer = Packer::new();
        packer.int(i64::from(id));
        match version {
            None => packer.nil(),
            Some(version) => packer.len(1).int(i64::from(version)),
        };
        Ok(packer)
    };
    let mut answer = client.ask_again(op::SCHEMAS_GET, payload).await?;
    answer.count("schemas")?;
    Ok(Arc::new(Schema::read(&mut answer)?))
}
