//! The task that keeps one flow fresh.
