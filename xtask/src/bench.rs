//! `cargo xtask bench`: runs criterion benches and compares the medians of one run with the targets of the design.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::cargo::{Cargo, Platforms, metadata, root};
use crate::error::{Error, Result};

/// A bench target and what its results are to reach.
struct Suite {
    name: &'static str,
    package: &'static str,
    comparisons: &'static [Comparison],
}

/// Two benches of one run: ours is to take at most `target` times as long as the reference.
struct Comparison {
    name: &'static str,
    ours: &'static str,
    reference: &'static str,
    target: f64,
}

const SUITES: &[Suite] = &[
    Suite {
        name: "windows",
        package: "windrow-time",
        comparisons: &[
            Comparison {
                name: "mark 10^7 instants, fixed grid, in order / their sum",
                ours: "windows/fixed_hours/in_order",
                reference: "windows/sum/in_order",
                target: 4.0,
            },
            Comparison {
                name: "mark 10^7 instants, fixed grid, shuffled / their sum",
                ours: "windows/fixed_hours/shuffled",
                reference: "windows/sum/shuffled",
                target: 12.0,
            },
            Comparison {
                name: "mark 10^7 instants, fixed grid, in 3 windows / their sum",
                ours: "windows/fixed_days/three_windows",
                reference: "windows/sum/three_windows",
                target: 12.0,
            },
            Comparison {
                name: "mark days in New York, in order / fixed grid",
                ours: "windows/zoned_days/in_order",
                reference: "windows/fixed_days/in_order",
                target: 5.0,
            },
            Comparison {
                name: "mark days in New York, shuffled / fixed grid",
                ours: "windows/zoned_days/shuffled",
                reference: "windows/fixed_days/shuffled",
                target: 5.0,
            },
            Comparison {
                name: "mark days in New York, in 3 windows / fixed grid",
                ours: "windows/zoned_days/three_windows",
                reference: "windows/fixed_days/three_windows",
                target: 5.0,
            },
        ],
    },
    Suite {
        name: "merger",
        package: "windrow-state",
        comparisons: &[
            Comparison {
                name: "merge 10^6 marks and take them in chunks / sort and pass",
                ours: "merger/dirty_set/1000000",
                reference: "merger/sort_and_pass/1000000",
                target: 3.0,
            },
            Comparison {
                name: "merge 20 000 marks and take them in chunks / cloned B-tree",
                ours: "merger/dirty_set/20000",
                reference: "merger/b_tree/20000",
                target: 0.05,
            },
        ],
    },
];

/// Runs the suites named, or all, and prints and writes what they reached; a target that is missed is no failure, as
/// machines are shared and noisy.
pub(crate) fn run(args: &[String]) -> Result {
    let suites: Vec<&Suite> =
        SUITES.iter().filter(|suite| args.is_empty() || args.iter().any(|arg| arg == suite.name)).collect();
    if let Some(unknown) = args.iter().find(|arg| SUITES.iter().all(|suite| suite.name != arg.as_str())) {
        let names: Vec<&str> = SUITES.iter().map(|suite| suite.name).collect();
        return Err(Error::Usage(format!("there is no bench `{unknown}`, only {}", names.join(", "))));
    }
    for suite in suites {
        Cargo::new("bench").args(["-p", suite.package, "--bench", suite.name]).run()?;
        let criterion = metadata(Platforms::Host)?.target_directory.into_std_path_buf().join("criterion");
        let results: Vec<Measured> = suite
            .comparisons
            .iter()
            .map(|comparison| Measured::read(comparison, &criterion))
            .collect::<Result<_>>()?;
        print!("{}", table(&results));
        let file = write(suite, &results)?;
        println!("written to {}", file.display());
    }
    Ok(())
}

/// A comparison with the medians that were found.
struct Measured<'a> {
    comparison: &'a Comparison,
    ours_ns: f64,
    reference_ns: f64,
}

impl<'a> Measured<'a> {
    fn read(comparison: &'a Comparison, criterion: &Path) -> Result<Self> {
        Ok(Self {
            comparison,
            ours_ns: median(&criterion.join(comparison.ours))?,
            reference_ns: median(&criterion.join(comparison.reference))?,
        })
    }

    fn ratio(&self) -> f64 {
        self.ours_ns / self.reference_ns
    }

    fn is_met(&self) -> bool {
        self.ratio() <= self.comparison.target
    }

    fn json(&self) -> Value {
        json!({
            "name": self.comparison.name,
            "ours_ns": self.ours_ns,
            "reference_ns": self.reference_ns,
            "ratio": self.ratio(),
            "target": self.comparison.target,
            "met": self.is_met(),
        })
    }
}

/// The median of a bench, in nanoseconds, as criterion has written it.
fn median(bench: &Path) -> Result<f64> {
    let file = bench.join("new/estimates.json");
    let text = fs::read_to_string(&file).map_err(Error::io(format!("read {}", file.display())))?;
    let estimates: Option<Value> = serde_json::from_str(&text).ok();
    estimates
        .and_then(|estimates| estimates["median"]["point_estimate"].as_f64())
        .ok_or(Error::NoMedian(file))
}

fn table(results: &[Measured<'_>]) -> String {
    let width = results.iter().map(|result| result.comparison.name.len()).max().unwrap_or(0);
    let mut text =
        format!("\n{:width$}  {:>10}  {:>10}  {:>6}  {:>6}\n", "", "ours", "reference", "ratio", "target");
    for result in results {
        let (name, target) = (result.comparison.name, result.comparison.target);
        let (ours, reference) = (result.ours_ns / 1e6, result.reference_ns / 1e6);
        let verdict = if result.is_met() { "met" } else { "MISSED" };
        text += &format!(
            "{name:width$}  {ours:>7.2} ms  {reference:>7.2} ms  {:>6.2}  {target:>6.2}  {verdict}\n",
            result.ratio()
        );
    }
    text
}

/// Writes `target/bench/SUITE.json` under the root of the workspace.
fn write(suite: &Suite, results: &[Measured<'_>]) -> Result<PathBuf> {
    let folder = root().join("target/bench");
    fs::create_dir_all(&folder).map_err(Error::io(format!("make {}", folder.display())))?;
    let file = folder.join(format!("{}.json", suite.name));
    let list = Value::Array(results.iter().map(Measured::json).collect());
    fs::write(&file, format!("{list:#}\n")).map_err(Error::io(format!("write {}", file.display())))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(ours_ns: f64) -> Measured<'static> {
        Measured { comparison: &SUITES[0].comparisons[0], ours_ns, reference_ns: 1e6 }
    }

    #[test]
    fn a_result_says_whether_its_target_is_met() {
        let (met, missed) = (measured(4e6), measured(5e6));
        assert_eq!(met.json()["met"], true);
        assert_eq!(missed.json()["ratio"], 5.0);
        let text = table(&[met, missed]);
        assert!(text.contains("4.00 ms     1.00 ms    4.00    4.00  met\n"), "{text}");
        assert!(text.contains("5.00    4.00  MISSED\n"), "{text}");
    }

    #[test]
    fn an_unknown_bench_is_refused_before_any_runs() {
        let Err(error) = run(&["windoes".to_owned()]) else { panic!("there is no such bench") };
        assert!(error.to_string().contains("only windows, merger"), "{error}");
    }
}
