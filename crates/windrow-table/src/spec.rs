//! What a table is declared to be.

use arrow::datatypes::{DataType, SchemaRef};
use windrow_time::TimeUnit;

/// What an insert on an existing key leaves of the row that was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum MergeMode {
    /// Nothing: the last row of a key is the row.
    #[default]
    LastRow,
    /// The values of columns for which the new row has NULL.
    LastNonNull,
}

/// The declaration of a table: its columns, its time index and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSpec {
    schema: SchemaRef,
    time_index: Option<usize>,
    primary_key: Vec<usize>,
    append_mode: bool,
    merge_mode: MergeMode,
}

/// A declaration that does not hold together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// The time index or a key names no column.
    #[error("there is no column {0}")]
    NoColumn(String),
    /// The time index is not a timestamp.
    #[error("the time index {column} must be a timestamp, not {data_type}")]
    TimeIndexType {
        /// The column.
        column: String,
        /// Its type.
        data_type: DataType,
    },
    /// Two columns have one name.
    #[error("column {0} is there twice")]
    DuplicateColumn(String),
}

impl TableSpec {
    /// A table of these columns, without time index and key: it keeps every row.
    ///
    /// # Errors
    /// When two columns have one name.
    pub fn new(schema: SchemaRef) -> Result<Self, SpecError> {
        let mut names: Vec<&String> = schema.fields().iter().map(|field| field.name()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(SpecError::DuplicateColumn(pair[0].clone()));
        }
        Ok(Self {
            schema,
            time_index: None,
            primary_key: Vec::new(),
            append_mode: false,
            merge_mode: MergeMode::default(),
        })
    }

    /// Declares the event-time column.
    ///
    /// # Errors
    /// When there is no such column, or it is not a timestamp.
    pub fn with_time_index(mut self, column: &str) -> Result<Self, SpecError> {
        let index = self.index_of(column)?;
        let data_type = self.schema.field(index).data_type();
        if !matches!(data_type, DataType::Timestamp(..)) {
            let data_type = data_type.clone();
            return Err(SpecError::TimeIndexType { column: column.to_owned(), data_type });
        }
        self.time_index = Some(index);
        Ok(self)
    }

    /// Declares the key columns; with the time index they identify a row.
    ///
    /// # Errors
    /// When there is no such column.
    pub fn with_primary_key<S: AsRef<str>>(mut self, columns: &[S]) -> Result<Self, SpecError> {
        self.primary_key =
            columns.iter().map(|name| self.index_of(name.as_ref())).collect::<Result<_, _>>()?;
        Ok(self)
    }

    /// Keeps every row, also those with an equal key.
    #[must_use]
    pub fn with_append_mode(mut self, append_mode: bool) -> Self {
        self.append_mode = append_mode;
        self
    }

    /// Declares what an insert on an existing key leaves of the row that was there.
    #[must_use]
    pub fn with_merge_mode(mut self, merge_mode: MergeMode) -> Self {
        self.merge_mode = merge_mode;
        self
    }

    fn index_of(&self, column: &str) -> Result<usize, SpecError> {
        self.schema.index_of(column).map_err(|_| SpecError::NoColumn(column.to_owned()))
    }

    /// The columns.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The position of the event-time column.
    #[must_use]
    pub fn time_index(&self) -> Option<usize> {
        self.time_index
    }

    /// The name of the event-time column.
    #[must_use]
    pub fn time_index_name(&self) -> Option<&str> {
        self.time_index.map(|index| self.schema.field(index).name().as_str())
    }

    /// The unit of the event-time column.
    #[must_use]
    pub fn time_unit(&self) -> Option<TimeUnit> {
        match self.schema.field(self.time_index?).data_type() {
            DataType::Timestamp(unit, _) => Some((*unit).into()),
            _ => None,
        }
    }

    /// The positions of the declared key columns.
    #[must_use]
    pub fn primary_key(&self) -> &[usize] {
        &self.primary_key
    }

    /// Whether every row is kept, whatever its key.
    #[must_use]
    pub fn append_mode(&self) -> bool {
        self.append_mode
    }

    /// What an insert on an existing key leaves of the row that was there.
    #[must_use]
    pub fn merge_mode(&self) -> MergeMode {
        self.merge_mode
    }

    /// The positions of the columns that identify a row, where an insert on an existing key is an update.
    #[must_use]
    pub fn row_key(&self) -> Option<Vec<usize>> {
        if self.append_mode || self.primary_key.is_empty() {
            return None;
        }
        let mut key = self.primary_key.clone();
        key.extend(self.time_index.filter(|index| !self.primary_key.contains(index)));
        Some(key)
    }
}
