//! A build that shows how far it is: cargo's own bar on a terminal, a line now and then in a log.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use cargo_metadata::{Message, PackageId};

use crate::cargo::{self, Cargo, Platforms};
use crate::error::{Error, Result};

/// How long a log may stay silent during a build.
const HEARTBEAT: Duration = Duration::from_secs(30);

/// Cargo's lines about one crate each: what the heartbeat sums up.
const PER_CRATE: [&str; 5] = ["Compiling", "Checking", "Documenting", "Downloaded", "Generated"];

/// Whether cargo draws a progress bar, so that nothing else has to be said.
pub(crate) fn on_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Runs a cargo command that compiles, and returns the programs that it made.
pub(crate) fn compile(cargo: &Cargo) -> Result<Vec<PathBuf>> {
    // Messages as JSON tell of every crate, also of those that need no work; warnings are still drawn on stderr.
    let mut command = cargo.command(&["--message-format=json-render-diagnostics"]);
    command.stdout(Stdio::piped());
    let expected = if on_terminal() {
        None
    } else {
        // Without colour the lines in PER_CRATE can be told apart.
        command
            .env("CARGO_TERM_PROGRESS_WHEN", "never")
            .env("CARGO_TERM_COLOR", "never")
            .stderr(Stdio::piped());
        packages_to_build(&cargo.packages())
    };
    let mut child = command.spawn().map_err(Error::io(format!("start `{}`", cargo.line())))?;
    let tally = follow(listen(&mut child), Tally::new(expected));
    let status = child.wait().map_err(Error::io(format!("wait for `{}`", cargo.line())))?;
    cargo.check(status)?;
    Ok(tally.programs)
}

/// A duration as a person would say it: `0.8s`, `12s`, `1m15s`.
pub(crate) fn format_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match (seconds / 60, seconds % 60) {
        (0, 0..10) => format!("{:.1}s", duration.as_secs_f64()),
        (0, seconds) => format!("{seconds}s"),
        (minutes, seconds) => format!("{minutes}m{seconds:02}s"),
    }
}

/// How many packages a build of some members needs, or of all if none is named.
///
/// The number is only shown: not knowing it is fine, and so is counting a few that only tests need.
fn packages_to_build(members: &[&str]) -> Option<usize> {
    let metadata = cargo::metadata(Platforms::Host).ok()?;
    let nodes = &metadata.resolve.as_ref()?.nodes;
    if members.is_empty() {
        return Some(nodes.len());
    }
    let needs: BTreeMap<&PackageId, &[PackageId]> =
        nodes.iter().map(|node| (&node.id, node.dependencies.as_slice())).collect();
    let mut unvisited: Vec<&PackageId> = metadata
        .workspace_packages()
        .into_iter()
        .filter(|package| members.contains(&package.name.as_str()))
        .map(|package| &package.id)
        .collect();
    let mut reached = BTreeSet::new();
    while let Some(package) = unvisited.pop() {
        if reached.insert(package) {
            unvisited.extend(needs.get(package).copied().into_iter().flatten());
        }
    }
    Some(reached.len())
}

/// What is heard from a running cargo.
enum Event {
    /// A crate is ready; if it is a program, where it is.
    Ready { package: String, program: Option<PathBuf> },
    /// A line for people.
    Said(String),
}

/// Reads the child's pipes on threads of their own, so that waiting for news can time out.
fn listen(child: &mut Child) -> Receiver<Event> {
    let (sender, receiver) = mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        let sender = sender.clone();
        thread::spawn(move || read_messages(stdout, &sender));
    }
    if let Some(stderr) = child.stderr.take() {
        thread::spawn(move || read_lines(stderr, &sender));
    }
    receiver
}

fn read_messages(stdout: impl Read, sender: &Sender<Event>) {
    for message in Message::parse_stream(BufReader::new(stdout)).map_while(io::Result::ok) {
        let event = match message {
            Message::CompilerArtifact(artifact) => Event::Ready {
                package: artifact.package_id.repr,
                program: artifact.executable.map(Into::into),
            },
            Message::TextLine(line) => Event::Said(line),
            _ => continue,
        };
        if sender.send(event).is_err() {
            return;
        }
    }
}

fn read_lines(stderr: impl Read, sender: &Sender<Event>) {
    // Not `lines`, which would give up at a byte that is not UTF-8, and with the pipe closed so would cargo.
    for line in BufReader::new(stderr).split(b'\n').map_while(io::Result::ok) {
        let line = String::from_utf8_lossy(&line).into_owned();
        if sender.send(Event::Said(line)).is_err() {
            return;
        }
    }
}

/// Prints what is worth printing until cargo closes its pipes.
fn follow(events: Receiver<Event>, mut tally: Tally) -> Tally {
    let start = Instant::now();
    let mut next_beat = start + HEARTBEAT;
    loop {
        match events.recv_timeout(next_beat.saturating_duration_since(Instant::now())) {
            Ok(Event::Ready { package, program }) => tally.add(package, program),
            Ok(Event::Said(line)) if is_per_crate(&line) => {}
            Ok(Event::Said(line)) => eprintln!("{line}"),
            Err(RecvTimeoutError::Timeout) => {
                next_beat += HEARTBEAT;
                if !on_terminal() {
                    eprintln!("{}", tally.heartbeat(start.elapsed()));
                }
            }
            Err(RecvTimeoutError::Disconnected) => return tally,
        }
    }
}

fn is_per_crate(line: &str) -> bool {
    line.starts_with(' ') && line.split_whitespace().next().is_some_and(|word| PER_CRATE.contains(&word))
}

/// What a build has made so far.
struct Tally {
    /// A package counts once, however many targets and build scripts it has.
    ready: BTreeSet<String>,
    expected: Option<usize>,
    programs: Vec<PathBuf>,
}

impl Tally {
    fn new(expected: Option<usize>) -> Self {
        Self { ready: BTreeSet::new(), expected, programs: Vec::new() }
    }

    fn add(&mut self, package: String, program: Option<PathBuf>) {
        self.ready.insert(package);
        self.programs.extend(program);
    }

    fn heartbeat(&self, elapsed: Duration) -> String {
        let ready = self.ready.len();
        let count = match self.expected {
            Some(expected) if expected >= ready => format!("{ready} of {expected}"),
            _ => ready.to_string(),
        };
        format!("  … {count} crates compiled, {}", format_duration(elapsed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heartbeat_counts_packages_and_not_artifacts() {
        let mut tally = Tally::new(Some(480));
        tally.add("serde 1.0.0".into(), None);
        tally.add("serde 1.0.0".into(), None);
        tally.add("windrow-cli 0.1.0".into(), Some("target/demo/windrow".into()));
        assert_eq!(tally.heartbeat(Duration::from_secs(250)), "  … 2 of 480 crates compiled, 4m10s");
        assert_eq!(tally.programs, [PathBuf::from("target/demo/windrow")]);
    }

    #[test]
    fn heartbeat_promises_no_total_that_it_does_not_know() {
        let mut tally = Tally::new(None);
        tally.add("serde 1.0.0".into(), None);
        assert_eq!(tally.heartbeat(Duration::from_secs(30)), "  … 1 crates compiled, 30s");
    }

    #[test]
    fn a_build_of_one_crate_needs_only_what_it_stands_on() {
        let (all, own) = (packages_to_build(&[]), packages_to_build(&["xtask"]));
        assert!(own > Some(1), "xtask has dependencies: {own:?}");
        assert!(own < all, "{own:?} of {all:?}");
    }

    #[test]
    fn cargo_messages_become_events() {
        let (sender, receiver) = mpsc::channel();
        read_messages("warming up\n{\"reason\":\"build-finished\",\"success\":true}\n".as_bytes(), &sender);
        drop(sender);
        let events: Vec<Event> = receiver.iter().collect();
        assert!(matches!(events.as_slice(), [Event::Said(line)] if line == "warming up"));
    }

    #[test]
    fn only_the_lines_about_single_crates_are_left_out() {
        assert!(is_per_crate("   Compiling serde v1.0.0"));
        assert!(is_per_crate("    Checking serde v1.0.0"));
        assert!(!is_per_crate("    Blocking waiting for file lock on build directory"));
        assert!(!is_per_crate("error: Compiling is hard"));
        assert!(!is_per_crate(""));
    }

    #[test]
    fn durations_read_well() {
        let cases = [(800, "0.8s"), (12_000, "12s"), (75_000, "1m15s"), (600_000, "10m00s")];
        for (millis, expected) in cases {
            assert_eq!(format_duration(Duration::from_millis(millis)), expected);
        }
    }
}
