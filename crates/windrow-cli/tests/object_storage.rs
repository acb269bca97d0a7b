//! Sources and sinks in S3: in a server of its protocol that the test starts.
#![cfg(feature = "s3")]

mod python;

/// What is installed from PyPI.
const PACKAGES: &[&str] = &["deltalake==1.6.6", "duckdb==2.0.1", "pyarrow", "moto[server]==5.1.22"];

#[test]
fn sources_and_sinks_in_object_storage_are_exact() {
    assert_eq!(python::checks("object-storage", PACKAGES, "object_storage.py", &[]), 10);
}
