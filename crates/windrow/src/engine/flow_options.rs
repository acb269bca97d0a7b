//! The options of a flow.

use windrow_runner::FlowOptions;
use windrow_state::Approach;

use super::EngineError;
use crate::sql::{Interval, Options};

/// What `WITH (…)` says.
pub(super) fn flow_options(written: &Options) -> Result<FlowOptions, EngineError> {
    let mut options = FlowOptions::default();
    for (key, value) in written {
        let number = || -> Result<u64, EngineError> {
            let parsed = value.parse::<u64>().ok().filter(|number| *number > 0);
            parsed.ok_or_else(|| EngineError::Option(format!("{key} must be a number above 0, not {value}")))
        };
        match key.as_str() {
            "refresh" => {
                options.approach = match value.to_ascii_lowercase().as_str() {
                    "auto" => Approach::Auto,
                    "merge" => Approach::Merge,
                    "recompute" => Approach::Recompute,
                    _ => {
                        return Err(EngineError::Option(format!(
                            "refresh must be auto, merge or recompute, not {value}"
                        )));
                    }
                }
            }
            "max_filters_per_query" => {
                options.limits.max_filters_per_query = usize::try_from(number()?).unwrap_or(usize::MAX);
            }
            "windows_per_query" => options.limits.windows_per_query = number()?,
            "merge_gap_windows" => options.limits.merge_gap_windows = number()?,
            "max_state_bytes" => {
                options.max_state_bytes = usize::try_from(number()?).unwrap_or(usize::MAX);
            }
            "min_refresh" => options.cadence.min_refresh = length(key, value)?,
            "query_timeout" => options.cadence.query_timeout = length(key, value)?,
            // For the sink, if the flow makes it.
            "sink_retention" => drop(length(key, value)?),
            _ => {
                return Err(EngineError::Option(format!(
                    "a flow has no option {key}; there are refresh, max_filters_per_query, windows_per_query, \
                     merge_gap_windows, max_state_bytes, min_refresh, query_timeout and sink_retention"
                )));
            }
        }
    }
    Ok(options)
}

/// The length of time that an option gives.
pub(super) fn length(key: &str, value: &str) -> Result<std::time::Duration, EngineError> {
    let parsed = value.parse::<Interval>().and_then(Interval::to_duration);
    parsed.map_err(|error| EngineError::Option(format!("{key} = {value}: {error}")))
}

/// The length of time that a clause gives.
pub(super) fn duration(
    clause: &'static str,
    interval: Option<Interval>,
) -> Result<Option<std::time::Duration>, EngineError> {
    interval.map(Interval::to_duration).transpose().map_err(|source| EngineError::Interval { clause, source })
}
