//! `CREATE TABLE` and `CREATE EXTERNAL TABLE`.

use std::collections::{HashMap, HashSet};

use datafusion::sql::sqlparser::ast::{ArrayElemTypeDef, ColumnOption, DataType, Expr, TimezoneInfo};
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Location, Token};

use super::dialect::Bounded;
use super::display::restated;
use super::error::SqlError;
use super::options::options;
use super::reader::{Named, Reader};
use super::statement::{ColumnSpec, CreateExternalTable, CreateTable, ExternalFormat};

/// What follows `CREATE TABLE`.
pub(super) fn create_table(r: &mut Reader<'_>) -> Result<CreateTable, SqlError> {
    let if_not_exists = r.accept("IF NOT EXISTS");
    let name = r.table_name()?;
    if r.is_next("AS") || r.is_next("LIKE") {
        let message = "CREATE TABLE takes a list of columns; to fill the table from a query, INSERT INTO it";
        return Err(r.not_supported(r.here(), message));
    }
    let draft = Draft::read(r)?;
    let options = if r.accept("WITH") { options(r)? } else { Default::default() };
    let Elements { columns, time_index, primary_key } = draft.finish(r)?;
    Ok(CreateTable { if_not_exists, name, columns, time_index, primary_key, options })
}

/// What follows `CREATE EXTERNAL TABLE`.
pub(super) fn create_external_table(r: &mut Reader<'_>) -> Result<CreateExternalTable, SqlError> {
    let if_not_exists = r.accept("IF NOT EXISTS");
    let name = r.table_name()?;
    let columns = if *r.peek() == Token::LParen { Draft::read(r)?.finish_external(r)? } else { Vec::new() };
    let (mut format, mut location, mut given) = (None, None, None);
    loop {
        let at = r.here();
        let repeated = if r.accept("STORED AS") {
            format.replace(external_format(r)?).is_some()
        } else if r.accept("LOCATION") {
            location.replace(r.string("a path or a URL in quotes")?).is_some()
        } else if r.accept("OPTIONS") {
            given.replace(options(r)?).is_some()
        } else {
            break;
        };
        if repeated {
            return Err(r.invalid(at, "this clause is given twice"));
        }
    }
    if r.is_next("PARTITIONED BY") || r.is_next("WITH ORDER") {
        let message = "this clause is not supported; the clauses are STORED AS, LOCATION and OPTIONS";
        return Err(r.not_supported(r.here(), message));
    }
    let format = format.ok_or_else(|| r.expected("STORED AS"))?;
    let location = location.ok_or_else(|| r.expected("LOCATION"))?;
    Ok(CreateExternalTable {
        if_not_exists,
        name,
        columns,
        format,
        location,
        options: given.unwrap_or_default(),
    })
}

fn external_format(r: &mut Reader<'_>) -> Result<ExternalFormat, SqlError> {
    let all = [ExternalFormat::Delta, ExternalFormat::Parquet, ExternalFormat::Csv];
    let format = all.into_iter().find(|format| r.accept(format.keyword()));
    format.ok_or_else(|| r.expected("DELTA, PARQUET or CSV"))
}

/// The elements of a table between the parentheses, as they were read.
#[derive(Default)]
struct Draft {
    columns: Vec<Column>,
    /// Where in the list each column is.
    places: HashMap<String, usize>,
    time_index: Option<Named>,
    primary_key: Option<Vec<Named>>,
}

struct Column {
    name: Named,
    data_type: DataType,
    nullable: Option<bool>,
    default: Option<Expr>,
}

/// The elements of a table, which fit together.
struct Elements {
    columns: Vec<ColumnSpec>,
    time_index: Option<String>,
    primary_key: Vec<String>,
}

impl Draft {
    fn read(r: &mut Reader<'_>) -> Result<Self, SqlError> {
        let mut draft = Self::default();
        r.expect_token(&Token::LParen)?;
        r.comma_separated(|r| draft.element(r))?;
        match r.accept_token(&Token::RParen) {
            true => Ok(draft),
            false => Err(r.expected("NULL, NOT NULL, DEFAULT, TIME INDEX, PRIMARY KEY, `,` or `)`")),
        }
    }

    fn element(&mut self, r: &mut Reader<'_>) -> Result<(), SqlError> {
        let at = r.here();
        let constraints = ["CONSTRAINT", "UNIQUE", "CHECK", "FOREIGN KEY"];
        if r.accept_call("TIME INDEX") {
            let name = r.name("a column name")?;
            r.expect_token(&Token::RParen)?;
            self.set_time_index(r, name)
        } else if r.accept_call("PRIMARY KEY") {
            let columns = r.comma_separated(|r| r.name("a column name"))?;
            r.expect_token(&Token::RParen)?;
            self.set_primary_key(r, at, columns)
        } else if let Some(constraint) = constraints.iter().find(|words| r.is_next(words)) {
            let message =
                format!("{constraint} is not supported; the constraints are TIME INDEX and PRIMARY KEY");
            Err(r.not_supported(at, message))
        } else {
            self.column(r)
        }
    }

    fn column(&mut self, r: &mut Reader<'_>) -> Result<(), SqlError> {
        let name = r.name("a column name")?;
        if self.places.insert(name.name.clone(), self.columns.len()).is_some() {
            return Err(r.invalid(name.at, format!("there are two columns `{}`", name.name)));
        }
        let data_type = data_type(r)?;
        self.columns.push(Column { name: name.clone(), data_type, nullable: None, default: None });
        while self.column_option(r, &name)? {}
        Ok(())
    }

    /// Reads an option of the last column, if there is one.
    fn column_option(&mut self, r: &mut Reader<'_>, name: &Named) -> Result<bool, SqlError> {
        let at = r.here();
        if r.accept("TIME INDEX") {
            self.set_time_index(r, Named { at, ..name.clone() })?;
            return Ok(true);
        }
        if r.accept("PRIMARY KEY") {
            self.set_primary_key(r, at, vec![name.clone()])?;
            return Ok(true);
        }
        let Some(column) = self.columns.last_mut() else { return Ok(false) };
        let (repeated, what) = if r.accept("NOT NULL") {
            (column.nullable.replace(false).is_some(), "is NULL or NOT NULL")
        } else if r.accept("NULL") {
            (column.nullable.replace(true).is_some(), "is NULL or NOT NULL")
        } else if r.is_next("DEFAULT") {
            (column.default.replace(default(r)?).is_some(), "has a DEFAULT")
        } else {
            return Ok(false);
        };
        match repeated {
            false => Ok(true),
            true => Err(r.invalid(at, format!("the column `{}` {what} already", name.name))),
        }
    }

    fn set_time_index(&mut self, r: &Reader<'_>, name: Named) -> Result<(), SqlError> {
        if let Some(first) = &self.time_index {
            return Err(r.invalid(
                name.at,
                format!("a table has one time index, and `{}` is it already", first.name),
            ));
        }
        self.time_index = Some(name);
        Ok(())
    }

    fn set_primary_key(&mut self, r: &Reader<'_>, at: Location, columns: Vec<Named>) -> Result<(), SqlError> {
        match self.primary_key.replace(columns) {
            None => Ok(()),
            Some(_) => {
                let message =
                    "a table has one primary key; to make it of several columns, write PRIMARY KEY (a, b)";
                Err(r.invalid(at, message))
            }
        }
    }

    /// Checks what only the whole list can tell.
    fn finish(mut self, r: &Reader<'_>) -> Result<Elements, SqlError> {
        if let Some(name) = &self.time_index {
            let Some(&place) = self.places.get(&name.name) else {
                return Err(r.invalid(
                    name.at,
                    format!("the time index `{}` is not a column of the table", name.name),
                ));
            };
            if self.columns[place].nullable.replace(false) == Some(true) {
                return Err(r.invalid(name.at, format!("the time index `{}` cannot be NULL", name.name)));
            }
        }
        let (mut primary_key, mut seen) = (Vec::new(), HashSet::new());
        for Named { name, at } in self.primary_key.take().unwrap_or_default() {
            if !self.places.contains_key(&name) {
                return Err(r.invalid(at, format!("the primary key has no column `{name}` in the table")));
            }
            if !seen.insert(name.clone()) {
                return Err(r.invalid(at, format!("the primary key names the column `{name}` twice")));
            }
            primary_key.push(name);
        }
        let columns = self.columns.into_iter().map(Column::into_spec).collect();
        Ok(Elements { columns, time_index: self.time_index.map(|name| name.name), primary_key })
    }

    /// The columns of an external table, which has its time index in its options and nothing else.
    fn finish_external(self, r: &Reader<'_>) -> Result<Vec<ColumnSpec>, SqlError> {
        if let Some(Named { name, at }) = &self.time_index {
            let message =
                format!("the time index of an external table is an option: OPTIONS ('time_index' '{name}')");
            return Err(r.invalid(*at, message));
        }
        if let Some(key) = self.primary_key.iter().flatten().next() {
            return Err(r.not_supported(key.at, "an external table has no primary key"));
        }
        if let Some(column) = self.columns.iter().find(|column| column.default.is_some()) {
            return Err(r.not_supported(column.name.at, "a column of an external table has no DEFAULT"));
        }
        self.finish(r).map(|elements| elements.columns)
    }
}

impl Column {
    fn into_spec(self) -> ColumnSpec {
        let Self { name, data_type, nullable, default } = self;
        ColumnSpec { name: name.name, data_type, nullable: nullable.unwrap_or(true), default }
    }
}

fn data_type(r: &mut Reader<'_>) -> Result<DataType, SqlError> {
    let at = r.here();
    let data_type = r.parse_short(Parser::parse_data_type)?;
    let data_type = with_precision(data_type);
    match reads_back(&data_type, &data_type.to_string(), |parser| parser.parse_data_type()) {
        true => Ok(data_type),
        false => Err(r.not_supported(at, format!("the type {data_type} is not supported"))),
    }
}

/// A type of time with its precision made explicit, here and in the elements of arrays.
fn with_precision(data_type: DataType) -> DataType {
    use ArrayElemTypeDef::{AngleBracket, Parenthesis, SquareBracket};

    let inside = |element: Box<DataType>| Box::new(with_precision(*element));
    match data_type {
        DataType::Timestamp(None, zone) => DataType::Timestamp(Some(6), zone),
        DataType::Custom(name, modifiers) if modifiers.is_empty() => {
            let precision = match name.to_string().to_ascii_uppercase().as_str() {
                "TIMESTAMP_S" => 0,
                "TIMESTAMP_MS" => 3,
                "TIMESTAMP_US" => 6,
                "TIMESTAMP_NS" => 9,
                _ => return DataType::Custom(name, modifiers),
            };
            DataType::Timestamp(Some(precision), TimezoneInfo::None)
        }
        DataType::Array(AngleBracket(element)) => DataType::Array(AngleBracket(inside(element))),
        DataType::Array(SquareBracket(element, size)) => {
            DataType::Array(SquareBracket(inside(element), size))
        }
        DataType::Array(Parenthesis(element)) => DataType::Array(Parenthesis(inside(element))),
        other => other,
    }
}

/// `DEFAULT` and the expression after it.
fn default(r: &mut Reader<'_>) -> Result<Expr, SqlError> {
    let at = r.here();
    // As a column option, so that a NOT NULL after it is not taken for a part of it.
    let Some(ColumnOption::Default(default)) = r.parse_short(Parser::parse_optional_column_option)? else {
        return Err(r.expected("the default of the column"));
    };
    match reads_back(&default, &restated(&default), |parser| parser.parse_expr()) {
        true => Ok(default),
        false => Err(r.not_supported(at, "this default cannot be stored; write it in another way")),
    }
}

/// Whether the text of a value parses to an equal value: what is stored must be read back.
fn reads_back<T: PartialEq>(
    value: &T,
    text: &str,
    read: impl for<'a> FnOnce(&mut Parser<'a>) -> Result<T, ParserError>,
) -> bool {
    let dialect = Bounded::new(text.len());
    let Ok(mut parser) = Parser::new(&dialect).try_with_sql(text) else { return false };
    read(&mut parser).is_ok_and(|again| again == *value) && parser.peek_token() == Token::EOF
}
