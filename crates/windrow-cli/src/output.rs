//! Printing answers and refreshes.

use std::io::{self, Write};
use std::sync::{Arc, Once};

use arrow::array::RecordBatch;
use arrow::csv::WriterBuilder;
use arrow::datatypes::SchemaRef;
use arrow::json::LineDelimitedWriter;
use arrow::util::pretty::pretty_format_batches_with_schema;
use windrow::Answer;
use windrow::runner::{MoveKind, RefreshError, RefreshListener, RefreshReport};

use crate::Failure;
use crate::args::Output;
use crate::progress::Progress;

/// Prints in one format, without disturbing the progress bar.
#[derive(Clone)]
pub(crate) struct Printer {
    output: Output,
    progress: Progress,
    header: Arc<Once>,
}

impl Printer {
    pub(crate) fn new(output: Output, progress: Progress) -> Self {
        Self { output, progress, header: Arc::new(Once::new()) }
    }

    /// Prints what a statement answers.
    pub(crate) fn answer(&self, answer: &Answer) -> Result<(), Failure> {
        match answer {
            Answer::Rows { schema, batches } => {
                let text = self.rows(schema, batches).map_err(|e| Failure::System("print rows", e))?;
                self.progress.aside(|| write_out(&text)).map_err(|e| Failure::System("print rows", e))
            }
            Answer::Done { message } => {
                self.note(message);
                Ok(())
            }
            Answer::Changed { verb, rows } => {
                let s = if *rows == 1 { "" } else { "s" };
                self.note(&format!("{verb} {} row{s}", grouped(*rows)));
                Ok(())
            }
        }
    }

    /// A line for people. Where rows are printed for programs, it goes to standard error.
    pub(crate) fn note(&self, line: &str) {
        self.progress.aside(|| match self.output {
            // Whether anybody reads it is not for a note to care about.
            Output::Table => drop(write_out(format!("{line}\n"))),
            Output::Csv | Output::Json => eprintln!("{line}"),
        });
    }

    /// A listener that prints a line for each refresh that did something.
    pub(crate) fn refresh_listener(&self) -> RefreshListener {
        let printer = self.clone();
        Arc::new(move |result: &Result<RefreshReport, RefreshError>| match result {
            Ok(report) if report.kind != MoveKind::Idle => {
                printer.header.call_once(|| printer.note(&refresh_header()));
                printer.note(&refresh_line(report));
            }
            _ => {}
        })
    }

    fn rows(&self, schema: &SchemaRef, batches: &[RecordBatch]) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        match self.output {
            Output::Table => {
                let table = pretty_format_batches_with_schema(Arc::clone(schema), batches);
                writeln!(text, "{}", table.map_err(io::Error::other)?)?;
            }
            Output::Csv => {
                let mut writer = WriterBuilder::new().with_header(true).build(&mut text);
                let empty = RecordBatch::new_empty(Arc::clone(schema));
                let batches = if batches.is_empty() { std::slice::from_ref(&empty) } else { batches };
                batches.iter().try_for_each(|batch| writer.write(batch)).map_err(io::Error::other)?;
            }
            Output::Json => {
                let mut writer = LineDelimitedWriter::new(&mut text);
                batches.iter().try_for_each(|batch| writer.write(batch)).map_err(io::Error::other)?;
                writer.finish().map_err(io::Error::other)?;
            }
        }
        Ok(text)
    }
}

fn write_out(text: impl AsRef<[u8]>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_ref())?;
    out.flush()
}

fn refresh_header() -> String {
    format!(
        "  {:<20} {:<8} {:<20} {:>9} {:>11} {:>13} {:>10}",
        "flow", "move", "coverage", "windows", "rows read", "rows written", "time"
    )
}

fn refresh_line(report: &RefreshReport) -> String {
    format!(
        "  {:<20} {:<8} {:<20} {:>9} {:>11} {:>13} {:>7} ms",
        report.flow,
        report.kind,
        report.coverage.map_or("-", |coverage| coverage.as_str()),
        grouped(report.windows),
        grouped(report.rows_read),
        grouped(report.rows_written),
        grouped(u64::try_from(report.elapsed.as_millis()).unwrap_or(u64::MAX)),
    )
}

/// A number with a space between each three digits.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn digits_are_grouped_from_the_right() {
        let numbers =
            [(0, "0"), (999, "999"), (1_000, "1 000"), (336_776, "336 776"), (1_000_000, "1 000 000")];
        for (number, text) in numbers {
            assert_eq!(grouped(number), text);
        }
    }
}
