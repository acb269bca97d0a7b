//! Other programs write the source and read the sinks: delta-rs' Python package and DuckDB, in a virtual environment that
//! the test makes.

mod python;

/// What is installed from PyPI.
const PACKAGES: &[&str] = &["deltalake==1.6.6", "duckdb==2.0.1", "pyarrow"];

#[test]
fn other_writers_are_followed_and_other_readers_find_what_they_compute() {
    // A plain source, and one that is partitioned and has a change data feed.
    for variant in ["plain", "feed"] {
        assert_eq!(python::checks("readers", PACKAGES, "pipeline.py", &[variant]), 16, "{variant}");
    }
}

#[test]
fn sinks_hold_what_the_source_has_after_random_commits_of_everybody() {
    for (variant, seed) in [("own", "2"), ("plain", "3"), ("feed", "2")] {
        let equal = python::checks("random", PACKAGES, "random_writers.py", &[variant, seed, "60"]);
        assert!(equal >= 25, "{variant}: {equal}");
    }
}
