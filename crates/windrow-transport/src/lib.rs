//! A flow query on its way to whatever runs it.
//!
//! A [`FlowQuery`] says what to compute, what it does to the sink, and which progress becomes true with it; an
//! [`Executor`] runs it and answers with a [`FlowOutcome`]. [`EmbeddedExecutor`] runs it in this process: the plan
//! goes over as it is, and each source table is read within the bounds that the query names.

mod embedded;
mod query;

pub use embedded::{EmbeddedExecutor, TableResolver};
pub use query::{ExecuteError, Executor, FlowOutcome, FlowQuery, Statement};
