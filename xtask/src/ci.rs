//! All the checks in a row, cheap ones first, as `.ci/run` runs them.

use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::progress::format_duration;
use crate::{steps, tidy};

struct Step {
    name: &'static str,
    run: fn(&[String]) -> Result,
}

/// In this order so that a slip is reported before anything large is compiled.
const STEPS: &[Step] = &[
    Step { name: "fmt", run: steps::fmt },
    Step { name: "tidy", run: tidy::run },
    Step { name: "clippy", run: steps::clippy },
    Step { name: "test", run: steps::test },
    Step { name: "doc", run: steps::doc },
];

pub(crate) fn run(_: &[String]) -> Result {
    let outcomes = run_until_failure(STEPS);
    eprint!("\n{}", summary(STEPS, &outcomes));
    match outcomes.iter().find(|outcome| !outcome.passed) {
        Some(outcome) => Err(Error::Step(outcome.name)),
        None => Ok(()),
    }
}

struct Outcome {
    name: &'static str,
    passed: bool,
    took: Duration,
}

fn run_until_failure(steps: &[Step]) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        eprintln!("\n== {} ({} of {})", step.name, index + 1, steps.len());
        let start = Instant::now();
        let result = (step.run)(&[]);
        let took = start.elapsed();
        let passed = result.is_ok();
        match result {
            Ok(()) => eprintln!("== {} ok in {}", step.name, format_duration(took)),
            Err(error) => eprintln!("== {} failed in {}: {error}", step.name, format_duration(took)),
        }
        outcomes.push(Outcome { name: step.name, passed, took });
        if !passed {
            break;
        }
    }
    outcomes
}

/// A line for each step, also for those that were not reached.
fn summary(steps: &[Step], outcomes: &[Outcome]) -> String {
    let mut text = String::from("ci summary\n");
    for (index, step) in steps.iter().enumerate() {
        let result = match outcomes.get(index) {
            Some(outcome) if outcome.passed => format!("ok       {}", format_duration(outcome.took)),
            Some(outcome) => format!("FAILED   {}", format_duration(outcome.took)),
            None => "not run".to_owned(),
        };
        text += &format!("  {:8}{result}\n", step.name);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAKE: &[Step] = &[
        Step { name: "good", run: |_| Ok(()) },
        Step { name: "bad", run: |_| Err(Error::Untidy(3)) },
        Step { name: "never", run: |_| panic!("ran after a failure") },
    ];

    #[test]
    fn nothing_runs_after_the_first_failure() {
        let outcomes = run_until_failure(FAKE);
        let passed: Vec<bool> = outcomes.iter().map(|outcome| outcome.passed).collect();
        assert_eq!(passed, [true, false]);
    }

    #[test]
    fn summary_names_every_step() {
        let outcome = |name, passed, seconds| Outcome { name, passed, took: Duration::from_secs(seconds) };
        let outcomes = [outcome("good", true, 12), outcome("bad", false, 61)];
        assert_eq!(
            summary(FAKE, &outcomes),
            "ci summary\n  good    ok       12s\n  bad     FAILED   1m01s\n  never   not run\n"
        );
    }
}
