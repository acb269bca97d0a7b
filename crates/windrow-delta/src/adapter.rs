//! Expressions over declared columns, as expressions over the stored ones.
//!
//! A scan speaks of the declared types throughout; a file has the stored ones. For each file, a column whose types
//! differ becomes a conversion of the stored column, and a comparison of such a column with a value becomes a
//! comparison of the stored column with the stored value, so that the statistics of row groups and pages, which are
//! in stored types, still rule out what cannot match.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, Operator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, Literal};
use datafusion::physical_expr_adapter::{
    DefaultPhysicalExprAdapter, PhysicalExprAdapter, PhysicalExprAdapterFactory,
};
use datafusion::scalar::ScalarValue;

use crate::convert::convert;

/// Makes the adapters for the files of a table.
#[derive(Debug)]
pub(crate) struct StoredTypes {
    /// The stored types of the columns that are in files.
    pub(crate) stored: SchemaRef,
}

impl PhysicalExprAdapterFactory for StoredTypes {
    fn create(&self, declared: SchemaRef, file: SchemaRef) -> Result<Arc<dyn PhysicalExprAdapter>> {
        // What the reader gives in the declared type already needs no detour.
        let as_read = declared.fields().iter().map(|field| {
            let read = file.field_with_name(field.name()).ok();
            match self.stored.field_with_name(field.name()) {
                Ok(stored) if read.is_none_or(|read| read.data_type() != field.data_type()) => {
                    Arc::new(stored.clone())
                }
                _ => Arc::clone(field),
            }
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
                    && let Some(declared) = self.converted(column)
                {
                    let declared: Arc<dyn PhysicalExpr> =
                        Arc::new(AsDeclared { stored: expr, field: declared });
                    return Ok(Transformed::new(declared, true, TreeNodeRecursion::Jump));
                }
                Ok(Transformed::no(expr))
            })
            .data()?;
        self.to_file.rewrite(stored)
    }
}

impl StoredAdapter {
    /// The declared field of a column that is not read in its declared type.
    fn converted(&self, column: &Column) -> Option<FieldRef> {
        let (index, declared) = self.declared.fields().find(column.name())?;
        (self.as_read.field(index).data_type() != declared.data_type()).then(|| Arc::clone(declared))
    }

    /// `column op value` (or `value op column`) over the stored column, where the order of values is the same.
    fn comparison(&self, expr: &BinaryExpr) -> Option<Arc<dyn PhysicalExpr>> {
        use Operator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
        if !matches!(expr.op(), Eq | NotEq | Lt | LtEq | Gt | GtEq) {
            return None;
        }
        let stored_value = |column: &Column, value: &Literal| {
            let declared = self.converted(column)?;
            let value = value.value();
            if value.data_type() != *declared.data_type() || !keeps_order(declared.data_type()) {
                return None;
            }
            let stored = self.as_read.field_with_name(column.name()).ok()?.data_type();
            // A value that the stored type cannot have is left to the comparison in the declared type.
            let value = convert(&value.to_array().ok()?, stored).ok()?;
            Some(Literal::new(ScalarValue::try_from_array(&value, 0).ok()?))
        };
        let (left, right) = (expr.left(), expr.right());
        let (left, right): (Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>) =
            match (left.downcast_ref::<Column>(), right.downcast_ref::<Column>()) {
                (Some(column), None) => {
                    let value = stored_value(column, right.downcast_ref::<Literal>()?)?;
                    (Arc::clone(left), Arc::new(value))
                }
                (None, Some(column)) => {
                    let value = stored_value(column, left.downcast_ref::<Literal>()?)?;
                    (Arc::new(value), Arc::clone(right))
                }
                _ => return None,
            };
        Some(Arc::new(BinaryExpr::new(left, *expr.op(), right)))
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
