//! The windrow program.
fn main() {}
