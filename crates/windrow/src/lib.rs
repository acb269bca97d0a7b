//! Continuous aggregates on Apache DataFusion.
