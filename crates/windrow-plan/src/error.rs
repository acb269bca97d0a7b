//! What can go wrong with a plan.

use arrow::datatypes::SchemaRef;
use datafusion::error::DataFusionError;
use windrow_time::WindowError;

/// Why a plan could not be analysed or rewritten.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The query's output does not fit the sink.
    #[error("the query does not fit the sink: {problem}\n  query: {}\n  sink:  {}", describe(.output), describe(.sink))]
    SinkMismatch {
        /// What is extra, missing or of another type.
        problem: String,
        /// The query's output.
        output: SchemaRef,
        /// The sink's columns.
        sink: SchemaRef,
    },
    /// The window expression failed.
    #[error(transparent)]
    Window(#[from] WindowError),
    /// DataFusion could not build the plan.
    #[error(transparent)]
    DataFusion(#[from] DataFusionError),
}

impl From<arrow::error::ArrowError> for PlanError {
    fn from(error: arrow::error::ArrowError) -> Self {
        Self::DataFusion(error.into())
    }
}

fn describe(schema: &SchemaRef) -> String {
    let columns: Vec<String> =
        schema.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type())).collect();
    columns.join(", ")
}
