//! The prompt.

use std::borrow::Cow;
use std::path::Path;

use reedline::{
    ColumnarMenu, DefaultCompleter, Emacs, FileBackedHistory, KeyCode, KeyModifiers, MenuBuilder, Prompt,
    PromptEditMode, PromptHistorySearch, Reedline, ReedlineEvent, ReedlineMenu, Signal, ValidationResult,
    Validator, default_emacs_keybindings,
};
use windrow::sql::statements;

use crate::script::Script;
use crate::{Failure, failure};

const WORDS: &[&str] = &[
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP BY",
    "ORDER BY",
    "LIMIT",
    "INSERT INTO",
    "VALUES",
    "DELETE FROM",
    "CREATE TABLE",
    "CREATE EXTERNAL TABLE",
    "STORED AS",
    "LOCATION",
    "CREATE FLOW",
    "CREATE OR REPLACE FLOW",
    "SINK TO",
    "EXPIRE AFTER",
    "EVAL INTERVAL",
    "TIME INDEX",
    "PRIMARY KEY",
    "DROP TABLE",
    "DROP FLOW",
    "SHOW TABLES",
    "SHOW FLOWS",
    "SHOW CREATE TABLE",
    "SHOW CREATE FLOW",
    "DESCRIBE",
    "ADMIN FLUSH_FLOW",
    "ADMIN CHECK_FLOW",
    "information_schema.flows",
    "date_bin",
    "date_trunc",
    "INTERVAL",
];

const HISTORY_LINES: usize = 10_000;

/// Reads statements until the end of the input, and runs each. An error is shown; the prompt goes on.
pub(crate) async fn read_and_run(mut script: Script<'_>, data_dir: Option<&Path>) -> Result<(), Failure> {
    let mut editor = editor(&script, data_dir)?;
    loop {
        match editor
            .read_line(&SqlPrompt)
            .map_err(|error| Failure::System("read from the terminal", error))?
        {
            Signal::Success(text) if matches!(text.trim(), "exit" | "quit" | "\\q") => return Ok(()),
            Signal::Success(text) => {
                if let Err(error) = script.run(&text).await {
                    failure(&error);
                }
            }
            Signal::CtrlD => return Ok(()),
            _ => {}
        }
    }
}

fn editor(script: &Script<'_>, data_dir: Option<&Path>) -> Result<Reedline, Failure> {
    let mut words: Vec<String> = WORDS.iter().map(ToString::to_string).collect();
    words.extend(script.engine.table_names());
    let completer = Box::new(DefaultCompleter::new_with_wordlen(words, 2));
    let menu = ReedlineMenu::EngineCompleter(Box::new(ColumnarMenu::default().with_name("completion")));
    let mut keys = default_emacs_keybindings();
    let complete = vec![ReedlineEvent::Menu("completion".into()), ReedlineEvent::MenuNext];
    keys.add_binding(KeyModifiers::NONE, KeyCode::Tab, ReedlineEvent::UntilFound(complete));
    let editor = Reedline::create()
        .with_validator(Box::new(WholeStatements))
        .with_completer(completer)
        .with_menu(menu)
        .with_edit_mode(Box::new(Emacs::new(keys)));
    // The history is kept with the data; in memory, it lasts as long as the data does.
    let Some(dir) = data_dir else { return Ok(editor) };
    let history = FileBackedHistory::with_file(HISTORY_LINES, dir.join("history"))
        .map_err(|error| Failure::System("open the history", std::io::Error::other(error.to_string())))?;
    Ok(editor.with_history(Box::new(history)))
}

/// Lines belong together up to a semicolon.
struct WholeStatements;

impl Validator for WholeStatements {
    fn validate(&self, text: &str) -> ValidationResult {
        let ends = text.trim_end().ends_with(';') || matches!(text.trim(), "" | "exit" | "quit" | "\\q");
        // A semicolon in a string that is still open does not end the statement.
        let open = statements(text).any(|s| matches!(s, Err(windrow::sql::SqlError::Unreadable { .. })));
        if ends && !open { ValidationResult::Complete } else { ValidationResult::Incomplete }
    }
}

struct SqlPrompt;

impl Prompt for SqlPrompt {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        "windrow".into()
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        "".into()
    }

    fn render_prompt_indicator(&self, _: PromptEditMode) -> Cow<'_, str> {
        "> ".into()
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        "      -> ".into()
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        format!("(search: {}) ", search.term).into()
    }
}
