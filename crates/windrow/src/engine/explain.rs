//! `EXPLAIN FLOW f`: its windows, whether it merges, and what the next refresh would do.

use std::sync::Arc;
use std::time::Duration;

use windrow_plan::{Kept, Merge, MergedCall, TimeWindow};
use windrow_runner::{FlowExplanation, MoveKind};
use windrow_state::Approach;
use windrow_time::Window;

use super::show::text_rows;
use super::{Answer, EngineError, Inner};

impl Inner {
    pub(super) async fn explain_flow(&self, name: &str) -> Result<Answer, EngineError> {
        let flow = {
            let entries = self.registry.read();
            let entry = entries.flow(name).ok_or_else(|| EngineError::NoFlow(name.to_owned()))?;
            Arc::clone(&entry.flow)
        };
        let failed = |error| EngineError::Refresh { flow: name.to_owned(), source: Box::new(error) };
        let explained = flow.explain().await.map_err(failed)?;
        let definition = flow.definition();
        let merges = match (&definition.merge, definition.options.approach) {
            (_, Approach::Recompute) => "no: 'refresh' is 'recompute'".to_owned(),
            (Ok(_), _) => "yes".to_owned(),
            (Err(reasons), _) => {
                let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
                format!("no: {}", reasons.join("; "))
            }
        };
        let window = match &definition.window {
            Some(window) => {
                let output = definition.query.schema().field(window.output()).name();
                format!("{output} = {}, of {}: {}", window.expression(), window.time_index(), kind_of(window))
            }
            None if definition.merge.is_ok() => "none: what new rows give is appended".to_owned(),
            None => "none: the whole query runs each time".to_owned(),
        };
        let mut rows = vec![
            ("sink".to_owned(), definition.sink.table().to_owned()),
            ("window".to_owned(), window),
            ("merges".to_owned(), merges),
            ("progress".to_owned(), progress_of(&explained)),
            ("next refresh".to_owned(), next_of(&explained)),
        ];
        for MergedCall { call, kept } in definition.merge.iter().flat_map(Merge::calls) {
            let kept = match kept {
                Kept::Value { output } => {
                    format!("its value, the output {}", definition.query.schema().field(output).name())
                }
                Kept::State { column, types } => {
                    let types: Vec<String> = types.iter().map(ToString::to_string).collect();
                    format!("its state in {column}: {}", types.join(", "))
                }
            };
            rows.insert(3, (format!("kept of {call}"), kept));
        }
        let state = self.session.state();
        for (kind, query) in explained.queries {
            let optimised = state.optimize(&query)?;
            rows.push((format!("plan of a {kind}"), optimised.display_indent().to_string()));
        }
        let (names, values) = rows.into_iter().unzip();
        text_rows(&[("what", names), ("is", values)])
    }
}

fn kind_of(window: &TimeWindow) -> String {
    match window.window() {
        Window::Fixed(grid) => {
            let nanos =
                u128::from(grid.width().unsigned_abs()) * u128::from(window.unit().nanos().unsigned_abs());
            let seconds = u64::try_from(nanos / 1_000_000_000).unwrap_or(u64::MAX);
            format!("a grid of {:?}", Duration::new(seconds, (nanos % 1_000_000_000) as u32))
        }
        Window::Calendar(calendar) => match calendar.zone() {
            Some(zone) => format!("a calendar of local time in {zone}"),
            None => "a calendar of months in UTC".to_owned(),
        },
        Window::Opaque(_) => "found by searching for where the value changes".to_owned(),
    }
}

fn progress_of(explained: &FlowExplanation) -> String {
    match &explained.progress {
        None => "not kept".to_owned(),
        Some(progress) if progress.checkpoint().is_none() => "nothing is consumed".to_owned(),
        Some(progress) => {
            let ranges = progress.dirty().ranges().len();
            let dirty = match ranges {
                0 => "no window is dirty".to_owned(),
                1 => "one range of windows is dirty".to_owned(),
                _ => format!("{ranges} ranges of windows are dirty"),
            };
            format!("consumed up to {}, {dirty}", progress.checkpoint())
        }
    }
}

fn next_of(explained: &FlowExplanation) -> String {
    let what = match explained.next {
        MoveKind::Idle => "nothing".to_owned(),
        MoveKind::Observe => "only notes what was consumed".to_owned(),
        MoveKind::Full => "runs the whole query".to_owned(),
        MoveKind::Merge if explained.windows == 0 => "appends what the new rows give".to_owned(),
        kind => format!("a {kind} of {} windows", explained.windows),
    };
    let costs = explained
        .costs
        .map(|(merge, repair)| format!(" (a merge handles about {merge} rows, a repair {repair})"));
    format!("{what}: {}{}", explained.why, costs.unwrap_or_default())
}
