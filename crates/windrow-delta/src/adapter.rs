//! Expressions over declared columns, as expressions over the stored ones.
//!
//! A scan speaks of the declared names and types throughout; a file has the stored ones. For each file, a column
//! becomes the stored one of its name or id (in tables with column mapping these are not its own), a column whose types
//! differ becomes a conversion of the stored column, and a comparison of such a column with a value becomes a
//! comparison of the stored column with the stored value, so that the statistics of row groups and pages, which are
//! in stored types, still rule out what cannot match.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, Operator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, Literal};
use datafusion::physical_expr_adapter::{
    DefaultPhysicalExprAdapter, PhysicalExprAdapter, PhysicalExprAdapterFactory,
};
use datafusion::scalar::ScalarValue;
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;

use crate::convert::convert;

/// Makes the adapters for the files of a table.
#[derive(Debug)]
pub(crate) struct StoredTypes {
    /// The columns as files have them, in the order of the declared ones.
    in_files: Vec<FieldRef>,
}

impl StoredTypes {
    pub(crate) fn new(in_files: Vec<FieldRef>) -> Self {
        Self { in_files }
    }
}

impl PhysicalExprAdapterFactory for StoredTypes {
    fn create(&self, declared: SchemaRef, file: SchemaRef) -> Result<Arc<dyn PhysicalExprAdapter>> {
        let as_read = declared.fields().iter().zip(&self.in_files).map(|(field, stored)| {
            let read = find(&file, stored);
            let name = match read {
                Some(read) => read.name().clone(),
                // Another column may have the name, where the table goes by ids.
                None if file.index_of(stored.name()).is_ok() => format!("\0{}", stored.name()),
                None => stored.name().clone(),
            };
            // What the reader gives in the declared type already needs no detour.
            let there = read.is_some_and(|read| read.data_type() == field.data_type());
            let data_type = if there { field.data_type() } else { stored.data_type() };
            Arc::new(Field::new(name, data_type.clone(), field.is_nullable()))
        });
        let as_read: SchemaRef = Arc::new(Schema::new(as_read.collect::<Vec<FieldRef>>()));
        let to_file = DefaultPhysicalExprAdapter::new(Arc::clone(&as_read), file);
        Ok(Arc::new(StoredAdapter { declared, as_read, to_file }))
    }
}

#[derive(Debug)]
struct StoredAdapter {
    declared: SchemaRef,
    as_read: SchemaRef,
    to_file: DefaultPhysicalExprAdapter,
}

impl PhysicalExprAdapter for StoredAdapter {
    fn rewrite(&self, expr: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        let stored = expr
            .transform_down(|expr| {
                if let Some(comparison) = expr.downcast_ref::<BinaryExpr>()
                    && let Some(stored) = self.comparison(comparison)
                {
                    return Ok(Transformed::new(stored, true, TreeNodeRecursion::Jump));
                }
                if let Some(column) = expr.downcast_ref::<Column>()
                    && let Some((stored, declared)) = self.stored(column)
                {
                    let column: Arc<dyn PhysicalExpr> = match self.converted(column) {
                        None => stored,
                        Some(_) => Arc::new(AsDeclared { stored, field: declared }),
                    };
                    return Ok(Transformed::new(column, true, TreeNodeRecursion::Jump));
                }
                Ok(Transformed::no(expr))
            })
            .data()?;
        self.to_file.rewrite(stored)
    }
}

impl StoredAdapter {
    /// A column as the file has it, and as it is declared.
    fn stored(&self, column: &Column) -> Option<(Arc<dyn PhysicalExpr>, FieldRef)> {
        let (index, declared) = self.declared.fields().find(column.name())?;
        Some((Arc::new(Column::new(self.as_read.field(index).name(), index)), Arc::clone(declared)))
    }

    /// The type that a column is read in, if that is not the declared one, and the latter.
    fn converted(&self, column: &Column) -> Option<(&DataType, &DataType)> {
        let (index, declared) = self.declared.fields().find(column.name())?;
        let read = self.as_read.field(index).data_type();
        (read != declared.data_type()).then(|| (read, declared.data_type()))
    }

    /// `column op value` (or `value op column`) over the stored column, where the order of values is the same.
    fn comparison(&self, expr: &BinaryExpr) -> Option<Arc<dyn PhysicalExpr>> {
        use Operator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
        if !matches!(expr.op(), Eq | NotEq | Lt | LtEq | Gt | GtEq) {
            return None;
        }
        let stored_value = |column: &Column, value: &Literal| {
            let (read, declared) = self.converted(column)?;
            let value = value.value();
            if value.data_type() != *declared || !keeps_order(declared) {
                return None;
            }
            // A value that the stored type cannot have is left to the comparison in the declared type.
            let value = convert(&value.to_array().ok()?, read).ok()?;
            let (column, _) = self.stored(column)?;
            Some((column, Literal::new(ScalarValue::try_from_array(&value, 0).ok()?)))
        };
        let (left, right) = (expr.left(), expr.right());
        let (left, right): (Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>) =
            match (left.downcast_ref::<Column>(), right.downcast_ref::<Column>()) {
                (Some(column), None) => {
                    let (column, value) = stored_value(column, right.downcast_ref::<Literal>()?)?;
                    (column, Arc::new(value))
                }
                (None, Some(column)) => {
                    let (column, value) = stored_value(column, left.downcast_ref::<Literal>()?)?;
                    (Arc::new(value), column)
                }
                _ => return None,
            };
        Some(Arc::new(BinaryExpr::new(left, *expr.op(), right)))
    }
}

/// A column in a file: by its id, where the table goes by ids, or by its name.
fn find<'a>(file: &'a Schema, column: &Field) -> Option<&'a FieldRef> {
    match column.metadata().get(PARQUET_FIELD_ID_META_KEY) {
        None => file.fields().find(column.name()).map(|(_, field)| field),
        id => file.fields().iter().find(|field| field.metadata().get(PARQUET_FIELD_ID_META_KEY) == id),
    }
}

/// Whether two values compare as the values that are stored for them.
fn keeps_order(declared: &DataType) -> bool {
    !declared.is_nested() && *declared != DataType::Float16
}

/// A stored column, in its declared type.
#[derive(Debug, Clone)]
struct AsDeclared {
    stored: Arc<dyn PhysicalExpr>,
    field: FieldRef,
}

impl PartialEq for AsDeclared {
    fn eq(&self, other: &Self) -> bool {
        self.stored.eq(&other.stored) && self.field == other.field
    }
}

impl Eq for AsDeclared {}

impl Hash for AsDeclared {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.stored.hash(state);
        self.field.hash(state);
    }
}

impl fmt::Display for AsDeclared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "declared({} AS {})", self.stored, self.field.data_type())
    }
}

impl PhysicalExpr for AsDeclared {
    fn return_field(&self, _: &Schema) -> Result<FieldRef> {
        Ok(Arc::clone(&self.field))
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        match self.stored.evaluate(batch)? {
            ColumnarValue::Array(array) => Ok(ColumnarValue::Array(convert(&array, self.field.data_type())?)),
            ColumnarValue::Scalar(value) => {
                let array = convert(&value.to_array()?, self.field.data_type())?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?))
            }
        }
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.stored]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let stored = children.pop().unwrap_or_else(|| Arc::clone(&self.stored));
        Ok(Arc::new(Self { stored, field: Arc::clone(&self.field) }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.stored.fmt_sql(f)
    }
}
