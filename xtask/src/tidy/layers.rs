//! The layers of docs/architecture.md, as a rule: an arrow that is not on the page is a violation.

use std::collections::BTreeSet;

use cargo_metadata::DependencyKind;

use super::Finding;
use super::graph::Graph;

/// Each crate of the architecture page, from the bottom up, and what it may depend on.
const LAYERS: &[(&str, &[&str])] = &[
    ("windrow-time", &[]),
    ("windrow-state", &["windrow-time"]),
    ("windrow-table", &["windrow-time", "windrow-state"]),
    ("windrow-plan", &["windrow-time"]),
    ("windrow-transport", &["windrow-time", "windrow-state", "windrow-table", "windrow-plan"]),
    (
        "windrow-runner",
        &["windrow-time", "windrow-state", "windrow-table", "windrow-plan", "windrow-transport"],
    ),
    ("windrow-delta", &["windrow-time", "windrow-state", "windrow-table"]),
    (
        "windrow",
        &[
            "windrow-time",
            "windrow-state",
            "windrow-table",
            "windrow-plan",
            "windrow-transport",
            "windrow-runner",
            "windrow-delta",
        ],
    ),
    ("windrow-server", &["windrow"]),
    ("windrow-cli", &["windrow", "windrow-server"]),
    ("xtask", &[]),
];

/// Packages that a crate must not stand on, however many steps away.
struct Ban {
    member: &'static str,
    /// A name that ends in `*` stands for all that begin so.
    packages: &'static [&'static str],
    why: &'static str,
}

const BANS: &[Ban] = &[
    Ban {
        member: "windrow-time",
        packages: &["datafusion*", "deltalake*", "tokio"],
        why: "the window math is usable without an engine",
    },
    Ban {
        member: "windrow-state",
        packages: &["datafusion*", "deltalake*", "tokio", "async-trait", "futures"],
        why: "the state machine is a pure value",
    },
];

/// What makes a program and not a library, and the crates that are programs.
const FOR_PROGRAMS: &[&str] = &["clap", "indicatif", "reedline"];
const PROGRAMS: &[&str] = &["windrow-cli", "windrow-server"];

/// A second version of these would be a second set of types, and values could not pass between crates.
const ONE_VERSION: &[&str] = &["arrow", "datafusion"];

pub(super) fn check(graph: &Graph) -> Vec<Finding> {
    [
        check_members(graph),
        check_arrows(graph),
        check_bans(graph),
        check_programs(graph),
        check_versions(graph),
    ]
    .concat()
}

fn check_members(graph: &Graph) -> Vec<Finding> {
    graph
        .members()
        .iter()
        .filter(|member| allowed(member).is_none())
        .map(|member| Finding::violation(member, "is not on the architecture page (docs/architecture.md)"))
        .collect()
}

fn check_arrows(graph: &Graph) -> Vec<Finding> {
    graph
        .declared()
        .iter()
        .filter(|arrow| graph.members().contains(&arrow.to))
        .filter(|arrow| {
            // A crate that is not on the page has been reported as such.
            allowed(&arrow.from).is_some_and(|direct| match arrow.kind {
                DependencyKind::Development => {
                    arrow.from != arrow.to && !below(&arrow.from).contains(arrow.to.as_str())
                }
                _ => !direct.contains(&arrow.to.as_str()),
            })
        })
        .map(|arrow| {
            let kind = match arrow.kind {
                DependencyKind::Development => "dev-",
                DependencyKind::Build => "build-",
                _ => "",
            };
            let to = &arrow.to;
            Finding::violation(
                &arrow.from,
                format_args!("the {kind}dependency on {to} is no arrow of the architecture page"),
            )
        })
        .collect()
}

fn check_bans(graph: &Graph) -> Vec<Finding> {
    let mut findings = Vec::new();
    for ban in BANS {
        for way in graph.ways_from(ban.member) {
            let banned = way.last().filter(|name| ban.packages.iter().any(|pattern| matches(pattern, name)));
            if let Some(name) = banned {
                let (way, why) = (way.join(" -> "), ban.why);
                findings.push(Finding::violation(
                    ban.member,
                    format_args!("must not depend on {name} ({why}): {way}"),
                ));
            }
        }
    }
    findings
}

fn check_programs(graph: &Graph) -> Vec<Finding> {
    graph
        .declared()
        .iter()
        .filter(|arrow| FOR_PROGRAMS.contains(&arrow.to.as_str()))
        .filter(|arrow| !PROGRAMS.contains(&arrow.from.as_str()))
        .map(|arrow| {
            let to = &arrow.to;
            Finding::violation(
                &arrow.from,
                format_args!("only {} may depend on {to}", PROGRAMS.join(" and ")),
            )
        })
        .collect()
}

fn check_versions(graph: &Graph) -> Vec<Finding> {
    ONE_VERSION
        .iter()
        .filter_map(|name| match graph.versions(name).as_slice() {
            [_] => None,
            [] => Some(Finding::violation("Cargo.lock", format_args!("has no {name}"))),
            versions => Some(Finding::violation(
                "Cargo.lock",
                format_args!("has more than one {name}: {}", versions.join(", ")),
            )),
        })
        .collect()
}

fn allowed(member: &str) -> Option<&'static [&'static str]> {
    LAYERS.iter().find(|(name, _)| *name == member).map(|(_, allowed)| *allowed)
}

/// All that `member` stands on: what tests may use without an arrow that points up.
fn below(member: &str) -> BTreeSet<&'static str> {
    let mut all = BTreeSet::new();
    for &direct in allowed(member).unwrap_or_default() {
        all.insert(direct);
        all.extend(below(direct));
    }
    all
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::super::texts;
    use super::*;
    use DependencyKind::{Build, Development, Normal};

    fn workspace() -> Graph {
        let names: Vec<&str> = LAYERS.iter().map(|(name, _)| *name).collect();
        Graph::of_members(&names)
    }

    #[test]
    fn layers_only_point_down() {
        for (index, (name, allowed)) in LAYERS.iter().enumerate() {
            let lower: Vec<&str> = LAYERS.iter().take(index).map(|(name, _)| *name).collect();
            for to in *allowed {
                assert!(lower.contains(to), "{name} -> {to}");
            }
        }
    }

    #[test]
    fn arrows_of_the_page_pass() {
        let graph = workspace()
            .declare(Normal, "windrow-state", "windrow-time")
            .declare(Normal, "windrow", "windrow-delta")
            .declare(Normal, "windrow-plan", "serde");
        assert_eq!(check_arrows(&graph), []);
    }

    #[test]
    fn an_arrow_that_is_not_on_the_page_fails() {
        let graph = workspace()
            .declare(Normal, "windrow-time", "windrow-state")
            .declare(Normal, "windrow-cli", "windrow-runner")
            .declare(Build, "xtask", "windrow-time");
        assert_eq!(
            texts(check_arrows(&graph)),
            [
                "violation  windrow-time: the dependency on windrow-state is no arrow of the architecture page",
                "violation  windrow-cli: the dependency on windrow-runner is no arrow of the architecture page",
                "violation  xtask: the build-dependency on windrow-time is no arrow of the architecture page",
            ]
        );
    }

    #[test]
    fn tests_may_use_all_that_is_below_and_the_crate_itself_but_nothing_above() {
        let graph = workspace().declare(Development, "windrow-cli", "windrow-time").declare(
            Development,
            "windrow-table",
            "windrow-table",
        );
        assert_eq!(check_arrows(&graph), []);

        let graph = workspace().declare(Development, "windrow-plan", "windrow-table").declare(
            Development,
            "windrow-table",
            "windrow",
        );
        assert_eq!(check_arrows(&graph).len(), 2);
    }

    #[test]
    fn a_crate_that_the_page_does_not_know_fails() {
        let graph = Graph::of_members(&["windrow-time", "windrow-extras"]).declare(
            Normal,
            "windrow-extras",
            "windrow-time",
        );
        assert_eq!(
            texts(check_members(&graph)),
            ["violation  windrow-extras: is not on the architecture page (docs/architecture.md)"]
        );
        assert_eq!(check_arrows(&graph), []);
    }

    #[test]
    fn a_pure_crate_must_not_reach_an_engine() {
        let graph = workspace()
            .resolve("windrow-time", "arrow")
            .resolve("arrow", "sneaky")
            .resolve("sneaky", "tokio")
            .resolve("windrow-table", "tokio")
            .resolve("windrow-state", "datafusion-common");
        assert_eq!(
            texts(check_bans(&graph)),
            [
                "violation  windrow-time: must not depend on tokio (the window math is usable without an engine): \
                 windrow-time -> arrow -> sneaky -> tokio",
                "violation  windrow-state: must not depend on datafusion-common (the state machine is a pure value): \
                 windrow-state -> datafusion-common",
            ]
        );
    }

    #[test]
    fn a_library_must_not_draw_on_the_terminal() {
        let graph =
            workspace().declare(Normal, "windrow-cli", "clap").declare(Normal, "windrow-runner", "indicatif");
        assert_eq!(
            texts(check_programs(&graph)),
            ["violation  windrow-runner: only windrow-cli and windrow-server may depend on indicatif"]
        );
    }

    #[test]
    fn a_second_version_of_arrow_fails() {
        let one = workspace().resolve("datafusion 55.2.0", "arrow 59.0.0");
        assert_eq!(check_versions(&one), []);
        let two = one.resolve("old", "arrow 58.0.0");
        assert_eq!(
            texts(check_versions(&two)),
            ["violation  Cargo.lock: has more than one arrow: 58.0.0, 59.0.0"]
        );
    }

    #[test]
    fn no_datafusion_at_all_fails() {
        let graph = workspace().resolve("windrow-time", "arrow");
        assert_eq!(texts(check_versions(&graph)), ["violation  Cargo.lock: has no datafusion"]);
    }
}
