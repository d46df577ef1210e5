//! The columns of a table at one version, and how rows become tuples by them.

use crate::{
    ColumnType, Columns, DecodeError, Error, Row, Value,
    wire::{
        pack::Packer,
        tuple::{Builder, Tuple},
        unpack::Unpacker,
    },
};

/// Fields of a column's description that this client reads; a newer server may send more.
const COLUMN_FIELDS: usize = 7;

#[derive(Debug)]
pub(crate) struct Schema {
    pub(crate) version: i32,
    names: Columns,
    kinds: Vec<ColumnType>,
    /// Columns of the key, in the order of the key.
    key: Vec<usize>,
    key_names: Columns,
}

/// Which columns a tuple has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Key,
    All,
}

// === impl Schema ===

impl Schema {
    pub(crate) fn read(unpacker: &mut Unpacker) -> Result<Self, DecodeError> {
        let version = unpacker.int("a schema version")?;
        let count = unpacker.count("columns")?;
        let (mut names, mut kinds, mut key) = (Vec::new(), Vec::new(), Vec::new());
        for index in 0..count {
            let fields = unpacker.count("fields of a column")?;
            names.push(unpacker.string("the name of a column")?);
            kinds.push(column_type(unpacker)?);
            let in_key = unpacker.int("a place in the key")?;
            unpacker.bool("whether a column is nullable")?;
            unpacker.int("a place in the colocation key")?;
            unpacker.int("a scale")?;
            unpacker.int("a precision")?;
            for _ in COLUMN_FIELDS..fields {
                unpacker.skip()?;
            }
            if in_key >= 0 {
                key.push((in_key, index));
            }
        }
        key.sort_unstable();
        let key: Vec<usize> = key.into_iter().map(|(_, index)| index).collect();
        let key_names = Columns::new(key.iter().map(|index| names[*index].clone()));
        Ok(Self { version, names: Columns::new(names), kinds, key, key_names })
    }

    fn indexes(&self, part: Part) -> Vec<usize> {
        match part {
            Part::Key => self.key.clone(),
            Part::All => (0..self.kinds.len()).collect(),
        }
    }

    /// Writes a row: which columns have no value, so that defaults apply, and the tuple.
    pub(crate) fn write(
        &self,
        table: &str,
        row: &Row,
        part: Part,
        packer: &mut Packer,
    ) -> Result<(), Error> {
        self.check_names(table, row)?;
        let mut missing = Vec::new();
        let mut tuple = Builder::new();
        for (at, index) in self.indexes(part).into_iter().enumerate() {
            let name = &self.names.names()[index];
            match row.get(name) {
                None if self.key.contains(&index) => {
                    let (table, column) = (table.to_owned(), name.clone());
                    return Err(Error::NoKey { table, column });
                }
                None => {
                    missing.push(at);
                    tuple.null();
                }
                Some(value) => {
                    self.check_type(table, index, value)?;
                    tuple.value(value);
                }
            }
        }
        packer.bits(&missing).binary(&tuple.finish());
        Ok(())
    }

    fn check_names(&self, table: &str, row: &Row) -> Result<(), Error> {
        let is_unknown = |name: &&String| !self.names.names().contains(name);
        match row.columns().names().iter().find(is_unknown) {
            None => Ok(()),
            Some(name) => Err(Error::NoColumn { table: table.to_owned(), column: name.clone() }),
        }
    }

    fn check_type(&self, table: &str, index: usize, value: &Value) -> Result<(), Error> {
        let (expected, found) = (self.kinds[index], value.column_type());
        if found == expected || found == ColumnType::Null {
            return Ok(());
        }
        let column = self.names.names()[index].clone();
        Err(Error::WrongType { table: table.to_owned(), column, expected, found })
    }

    pub(crate) fn read_row(&self, part: Part, unpacker: &mut Unpacker) -> Result<Row, DecodeError> {
        let bytes = unpacker.binary("a row")?;
        let (names, indexes) = match part {
            Part::Key => (&self.key_names, self.indexes(part)),
            Part::All => (&self.names, self.indexes(part)),
        };
        let tuple = Tuple::new(bytes, indexes.len())?;
        let values: Result<Vec<Value>, DecodeError> = (indexes.iter().enumerate())
            .map(|(at, index)| tuple.value(at, self.kinds[*index]))
            .collect();
        Ok(names.row(values?))
    }
}

pub(crate) fn column_type(unpacker: &mut Unpacker) -> Result<ColumnType, DecodeError> {
    let id = unpacker.int("the type of a column")?;
    ColumnType::from_id(id).ok_or(DecodeError::ColumnType { id })
}
