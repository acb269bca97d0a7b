//! A flow query and the executors that run it.
