//! Rewriters of DataFusion plans for continuous aggregates.
