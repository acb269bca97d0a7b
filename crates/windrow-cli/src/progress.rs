//! The progress bar of a script, on a terminal.

use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use windrow::RowsLoadedListener;
use windrow::sql::statements;

use crate::output::grouped;

/// How far a script has come. On anything but a terminal it shows nothing.
#[derive(Clone)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// The progress over the statements of `script`.
    pub(crate) fn over(script: &str) -> Self {
        let bar = ProgressBar::new(statements(script).count() as u64);
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} statements {elapsed} {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }

    /// Progress that is never shown.
    pub(crate) fn hidden() -> Self {
        Self(ProgressBar::hidden())
    }

    /// A statement begins.
    pub(crate) fn begin(&self, statement: &str) {
        let line = statement.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
        self.0.set_prefix(line.clone());
        self.0.set_message(line);
    }

    /// A statement has ended.
    pub(crate) fn advance(&self) {
        self.0.inc(1);
    }

    /// The script has ended.
    pub(crate) fn finish(&self) {
        self.0.finish_and_clear();
    }

    /// Does something that prints, with the bar out of the way.
    pub(crate) fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.0.suspend(print)
    }

    /// A listener that shows the rows a running statement has loaded.
    pub(crate) fn rows_listener(&self) -> RowsLoadedListener {
        let bar = self.0.clone();
        Arc::new(move |rows| bar.set_message(format!("{}: {} rows", bar.prefix(), grouped(rows))))
    }
}
