//! Rows, and the names of their columns.

use std::sync::Arc;

use crate::Value;

/// Names of columns, shared by all rows that have them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns(Arc<[String]>);

/// Values by the names of their columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    columns: Columns,
    values: Vec<Value>,
}

// === impl Columns ===

impl Columns {
    pub fn new<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Self {
        Self(names.into_iter().map(Into::into).collect())
    }

    /// A row of these columns.
    ///
    /// # Panics
    ///
    /// If there are not as many values as columns.
    #[must_use]
    pub fn row(&self, values: impl IntoIterator<Item = Value>) -> Row {
        let values: Vec<Value> = values.into_iter().collect();
        assert_eq!(values.len(), self.0.len(), "one value for each column");
        Row { columns: self.clone(), values }
    }

    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.0
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|each| each == name)
    }
}

// === impl Row ===

impl Row {
    /// For few rows; for many of the same columns there is [`Columns::row`].
    #[must_use]
    pub fn new<'a>(fields: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        let (names, values): (Vec<String>, Vec<Value>) =
            fields.into_iter().map(|(name, value)| (name.to_owned(), value)).unzip();
        Self { columns: Columns(names.into()), values }
    }

    /// The value of a column, by its exact name: Ignite writes unquoted names in capitals.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.columns.position(name).map(|at| &self.values[at])
    }

    #[must_use]
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    #[must_use]
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    #[must_use]
    pub fn into_values(self) -> Vec<Value> {
        self.values
    }
}
