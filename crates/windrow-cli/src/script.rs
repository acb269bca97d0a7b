//! Running statements, and keeping flows fresh between them.

use windrow::sql::{Statement, statements};
use windrow::{Engine, ScriptError};

use crate::Failure;
use crate::output::Printer;
use crate::progress::Progress;

/// Runs statements on an engine.
pub(crate) struct Script<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) printer: &'a Printer,
    pub(crate) progress: &'a Progress,
    /// Whether flows are refreshed only by statements that say so.
    pub(crate) manual: bool,
}

impl Script<'_> {
    /// Runs the statements of `text`, one after the other, and refreshes the flows after each one that gives them
    /// something to do.
    pub(crate) async fn run(&mut self, text: &str) -> Result<(), Failure> {
        for statement in statements(text) {
            let statement = statement.map_err(|error| {
                let (line, text) = (error.place().statement_line, error.place().statement.clone());
                Failure::Script(ScriptError::new(line, &text, error.into()))
            })?;
            self.progress.begin(&statement.text);
            let located = |error| Failure::Script(ScriptError::new(statement.line, &statement.text, error));
            let answer = self.engine.execute(&statement.statement).await.map_err(located)?;
            self.printer.answer(&answer)?;
            let has_work = answer.changed_rows() || matches!(statement.statement, Statement::CreateFlow(_));
            if has_work && !self.manual {
                self.engine.refresh_until_idle().await.map_err(located)?;
            }
            self.progress.advance();
        }
        Ok(())
    }

    /// Refreshes the flows that have something to do.
    pub(crate) async fn refresh(&mut self) -> Result<(), Failure> {
        if self.manual {
            return Ok(());
        }
        self.engine.refresh_until_idle().await.map(drop).map_err(Failure::Engine)
    }
}
