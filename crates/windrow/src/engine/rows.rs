//! `INSERT`, `DELETE` and `SELECT`.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::RecordBatch;
use arrow::datatypes::DataType;
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, cast, lit};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{execute_stream, stream::EmptyRecordBatchStream};
use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::sqlparser::ast;
use futures::StreamExt;
use windrow_table::{Commit, MergeMode, RowStream, SinkTable, Write};

use super::declaration::TableDeclaration;
use super::registry::{FlowEntry, TableEntry};
use super::{Answer, EngineError, Inner};
use crate::sql::{Insert, TableName};

impl Inner {
    pub(super) async fn select(&self, query: &ast::Query) -> Result<Answer, EngineError> {
        let plan = self.plan_query(query).await?;
        self.collect(plan).await
    }

    pub(super) async fn plan_query(&self, query: &ast::Query) -> Result<LogicalPlan, EngineError> {
        let statement = ast::Statement::Query(Box::new(query.clone()));
        let statement = DataFusionStatement::Statement(Box::new(statement));
        Ok(self.session.state().statement_to_plan(statement).await?)
    }

    pub(super) async fn collect(&self, plan: LogicalPlan) -> Result<Answer, EngineError> {
        let frame = self.session.execute_logical_plan(plan).await?;
        let schema = Arc::new(frame.schema().as_arrow().clone());
        Ok(Answer::Rows { schema, batches: frame.collect().await? })
    }

    pub(super) async fn set_variable(&self, set: &ast::Statement) -> Result<Answer, EngineError> {
        let statement = DataFusionStatement::Statement(Box::new(set.clone()));
        let plan = self.session.state().statement_to_plan(statement).await?;
        self.session.execute_logical_plan(plan).await?;
        Ok(Answer::done("set"))
    }

    pub(super) async fn insert(&self, insert: &Insert) -> Result<Answer, EngineError> {
        let (table, declaration) = self.writable(&insert.table)?;
        let all = declaration.column_names();
        let columns = if insert.columns.is_empty() { &all } else { &insert.columns };
        declaration.check_columns(columns)?;
        let query = self.with_defaults(&insert.source, columns, &declaration)?;
        let source = self.plan_query(&query).await?;
        let rows = self.write_rows(table.as_ref(), &declaration, source, columns).await?;
        Ok(Answer::Changed { verb: "inserted", rows })
    }

    /// Inserts rows whose columns have the names of the table's.
    pub(super) async fn insert_batches(
        &self,
        name: &str,
        rows: Vec<RecordBatch>,
    ) -> Result<u64, EngineError> {
        let (table, declaration) = self.writable(&TableName::bare(name))?;
        let Some(first) = rows.first() else { return Ok(0) };
        let columns: Vec<String> = first.schema().fields().iter().map(|field| field.name().clone()).collect();
        declaration.check_columns(&columns)?;
        let source = self.session.read_batches(rows)?.into_unoptimized_plan();
        self.write_rows(table.as_ref(), &declaration, source, &columns).await
    }

    /// Commits the rows of `source`, whose outputs are `columns`, and wakes up whom that concerns.
    async fn write_rows(
        &self,
        table: &dyn SinkTable,
        declaration: &TableDeclaration,
        source: LogicalPlan,
        columns: &[String],
    ) -> Result<u64, EngineError> {
        let plan = self.with_all_columns(source, columns, declaration)?;
        if table.spec().merge_mode() == MergeMode::LastNonNull {
            return self.merge_rows(table, declaration, plan).await;
        }
        let state = self.session.state();
        let physical = state.create_physical_plan(&plan).await?;
        let rows = self.reported(execute_stream(physical, state.task_ctx())?);
        let write = match table.spec().row_key() {
            Some(key) => Write::Upsert { key },
            None => Write::Append,
        };
        let done = table.commit(Commit { write, rows, progress: None, expected: None }).await?;
        self.notify_users(&declaration.name);
        Ok(done.rows_added)
    }

    fn writable(&self, name: &TableName) -> Result<(Arc<dyn SinkTable>, Arc<TableDeclaration>), EngineError> {
        match self.registry.table(name)? {
            TableEntry::Own { table, declaration } => Ok((table, declaration)),
            _ => Err(EngineError::Refused(format!("{name} is an external table, which others write"))),
        }
    }

    /// The rows of `source`, whose outputs are `columns`, with all columns of the table.
    fn with_all_columns(
        &self,
        source: LogicalPlan,
        columns: &[String],
        declaration: &TableDeclaration,
    ) -> Result<LogicalPlan, EngineError> {
        let given = source.schema().fields().len();
        if given != columns.len() {
            return Err(EngineError::Refused(format!(
                "{given} values are given for {} columns ({})",
                columns.len(),
                columns.join(", ")
            )));
        }
        let output = Arc::clone(source.schema());
        let mut values = Vec::with_capacity(declaration.schema.fields().len());
        for field in declaration.schema.fields() {
            let value = match columns.iter().position(|column| column == field.name()) {
                Some(index) => Expr::Column(Column::from(output.qualified_field(index))),
                None => match declaration.defaults.get(field.name()) {
                    Some(default) => self.default_value(default)?,
                    None if field.is_nullable() => lit(ScalarValue::Null),
                    None => {
                        return Err(EngineError::Refused(format!(
                            "column {} needs a value: it has no default and cannot be NULL",
                            field.name()
                        )));
                    }
                },
            };
            values.push(cast(value, field.data_type().clone()).alias(field.name()));
        }
        Ok(LogicalPlanBuilder::from(source).project(values)?.build()?)
    }

    /// The query with every `DEFAULT` in its VALUES replaced by what the column's default is.
    fn with_defaults(
        &self,
        query: &ast::Query,
        columns: &[String],
        declaration: &TableDeclaration,
    ) -> Result<ast::Query, EngineError> {
        let mut query = query.clone();
        let ast::SetExpr::Values(values) = query.body.as_mut() else { return Ok(query) };
        for row in &mut values.rows {
            for (index, value) in row.iter_mut().enumerate() {
                if Insert::is_default(value) {
                    let default = columns.get(index).and_then(|column| declaration.defaults.get(column));
                    *value = match default {
                        Some(sql) => parse_expression(sql)?,
                        None => ast::Expr::Value(ast::Value::Null.into()),
                    };
                }
            }
        }
        Ok(query)
    }

    /// The value of a default expression, which can name no column.
    pub(super) fn default_value(&self, sql: &str) -> Result<Expr, EngineError> {
        Ok(self.session.state().create_logical_expr(sql, &DFSchema::empty())?)
    }

    /// Wakes the flows up that a statement on `table` concerns: those that read it, and the one that keeps it.
    pub(super) fn notify_users(&self, table: &str) {
        self.notify_where(|entry| {
            entry.create.sink.table == table || entry.reads.iter().any(|name| name == table)
        });
    }

    /// Wakes the flows up that read the sink `table`.
    pub(super) fn notify_readers_of_sink(&self, table: &str) {
        self.notify_where(|entry| entry.reads.iter().any(|name| name == table));
    }

    fn notify_where(&self, concerned: impl Fn(&FlowEntry) -> bool) {
        let entries = self.registry.read();
        entries.flows.iter().filter(|entry| concerned(entry)).for_each(|entry| entry.flow.notify());
    }

    /// The same rows, counted for whoever listens.
    fn reported(&self, rows: RowStream) -> RowStream {
        let Some(listener) = self.rows_loaded.get().cloned() else { return rows };
        let loaded = AtomicU64::new(0);
        let schema = rows.schema();
        let counted = rows.inspect(move |batch| {
            if let Ok(batch) = batch {
                let more = batch.num_rows() as u64;
                listener(loaded.fetch_add(more, Ordering::Relaxed) + more);
            }
        });
        Box::pin(RecordBatchStreamAdapter::new(schema, counted))
    }

    /// Has the table keep its rows in fewer and larger pieces.
    pub(super) async fn compact(&self, name: &str) -> Result<Answer, EngineError> {
        let (table, _) = self.writable(&TableName::bare(name))?;
        let rows: RowStream = Box::pin(EmptyRecordBatchStream::new(Arc::clone(table.spec().schema())));
        table.commit(Commit { write: Write::Compact, rows, progress: None, expected: None }).await?;
        Ok(Answer::done(format!("compacted table {name}")))
    }

    pub(super) async fn vacuum(&self, name: &str) -> Result<Answer, EngineError> {
        let (table, _) = self.writable(&TableName::bare(name))?;
        let files = table.clean_up().await?;
        Ok(Answer::done(format!("deleted {files} files of older versions of table {name}")))
    }

    pub(super) async fn delete(
        &self,
        name: &TableName,
        predicate: Option<&ast::Expr>,
    ) -> Result<Answer, EngineError> {
        let (table, _) = self.writable(name)?;
        let spec_schema = Arc::clone(table.spec().schema());
        let predicate = match predicate {
            None => lit(true),
            Some(sql) => {
                if let Some(part) = beyond_one_row(sql) {
                    let message = format!("DELETE looks at one row at a time, and its condition has {part}");
                    return Err(EngineError::Refused(message));
                }
                let schema = DFSchema::try_from_qualified_schema(name.table.as_str(), &spec_schema)?;
                self.session.state().create_logical_expr(&sql.to_string(), &schema)?
            }
        };
        let schema = Arc::new(DFSchema::try_from(Arc::clone(&spec_schema))?);
        let state = self.session.state();
        // Functions such as `now` are there to be replaced by their value.
        let context = SimplifyContext::builder()
            .with_schema(Arc::clone(&schema))
            .with_config_options(Arc::clone(state.config_options()))
            .with_current_time()
            .build();
        let simplifier = ExprSimplifier::new(context);
        let predicate = simplifier.simplify(simplifier.coerce(unqualified(predicate)?, &schema)?)?;
        let predicate = match predicate.get_type(&schema)? {
            DataType::Boolean => predicate,
            DataType::Null => lit(false),
            other => return Err(EngineError::Refused(format!("a condition cannot be {other}"))),
        };
        let predicate = state.create_physical_expr(predicate, &schema)?;
        let rows: RowStream = Box::pin(EmptyRecordBatchStream::new(spec_schema));
        let write = Write::Delete { predicate };
        let done = table.commit(Commit { write, rows, progress: None, expected: None }).await?;
        self.notify_users(&name.table);
        Ok(Answer::Changed { verb: "deleted", rows: done.rows_removed })
    }
}

/// What in a condition has no value for a row alone.
fn beyond_one_row(condition: &ast::Expr) -> Option<&'static str> {
    let found = ast::visit_expressions(condition, |part| match part {
        ast::Expr::Subquery(_) | ast::Expr::InSubquery { .. } | ast::Expr::Exists { .. } => {
            ControlFlow::Break("a subquery")
        }
        ast::Expr::Function(function) if function.over.is_some() => ControlFlow::Break("a window function"),
        _ => ControlFlow::Continue(()),
    });
    found.break_value()
}

fn parse_expression(sql: &str) -> Result<ast::Expr, EngineError> {
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::parser::Parser;
    let parsed = Parser::new(&GenericDialect {}).try_with_sql(sql).and_then(|mut parser| parser.parse_expr());
    parsed.map_err(|error| EngineError::Refused(format!("the default {sql} cannot be read: {error}")))
}

fn unqualified(expr: Expr) -> Result<Expr, EngineError> {
    use datafusion::common::tree_node::{Transformed, TreeNode};
    let expr = expr.transform_up(|e| {
        Ok(match e {
            Expr::Column(column) if column.relation.is_some() => {
                Transformed::yes(Expr::Column(Column::new_unqualified(column.name)))
            }
            other => Transformed::no(other),
        })
    })?;
    Ok(expr.data)
}
