//! Places at which a test can end the process as if it were killed there: `crash_point!("name")`.
//!
//! Without the feature `crash-points` they are nothing. With it, the `fail` crate decides by name whether to end, so that
//! a test can choose the place and the time (`fail::cfg("delta::log-entry-is-there", "3*off->return")`).

/// Ends the process if a test has asked for that at this place.
#[cfg(feature = "crash-points")]
macro_rules! crash_point {
    ($name:literal) => {
        fail::fail_point!($name, |_| std::process::abort());
    };
}

/// Ends the process if a test has asked for that at this place: nothing, without the feature `crash-points`.
#[cfg(not(feature = "crash-points"))]
macro_rules! crash_point {
    ($name:literal) => {};
}

pub(crate) use crash_point;
