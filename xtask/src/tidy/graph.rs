//! Who depends on whom, as a plain value: a test makes one up from a handful of arrows.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use cargo_metadata::{DependencyKind, Metadata, Node, PackageId};

/// A package in the lock file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
    /// The SPDX expression, if the package has one.
    pub(super) license: Option<String>,
}

impl fmt::Display for Package {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.version)
    }
}

/// A line of a member's manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Declared {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) kind: DependencyKind,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Graph {
    members: BTreeSet<String>,
    declared: Vec<Declared>,
    /// Every resolved package, and what it needs at run time.
    normal: BTreeMap<Package, Vec<Package>>,
}

impl Graph {
    pub(super) fn read(metadata: &Metadata) -> Self {
        let packages: BTreeMap<&PackageId, Package> = metadata
            .packages
            .iter()
            .map(|package| {
                let value = Package {
                    name: package.name.to_string(),
                    version: package.version.to_string(),
                    license: package.license.clone(),
                };
                (&package.id, value)
            })
            .collect();
        let members = metadata.workspace_packages();
        let nodes = metadata.resolve.iter().flat_map(|resolve| &resolve.nodes);
        Self {
            members: members.iter().map(|member| member.name.to_string()).collect(),
            declared: members
                .iter()
                .flat_map(|member| {
                    member.dependencies.iter().map(|dependency| Declared {
                        from: member.name.to_string(),
                        to: dependency.name.clone(),
                        kind: dependency.kind,
                    })
                })
                .collect(),
            normal: nodes
                .filter_map(|node| {
                    let package = packages.get(&node.id)?.clone();
                    let needs =
                        normal_dependencies(node).filter_map(|id| packages.get(id).cloned()).collect();
                    Some((package, needs))
                })
                .collect(),
        }
    }

    /// The crates of this workspace.
    pub(super) fn members(&self) -> &BTreeSet<String> {
        &self.members
    }

    /// What the members' manifests say, whatever features and platform are chosen.
    pub(super) fn declared(&self) -> &[Declared] {
        &self.declared
    }

    /// The packages that others wrote.
    pub(super) fn external(&self) -> impl Iterator<Item = &Package> {
        self.normal.keys().filter(|package| !self.members.contains(&package.name))
    }

    /// The versions of a package in the build.
    pub(super) fn versions(&self, name: &str) -> Vec<&str> {
        self.normal
            .keys()
            .filter(|package| package.name == name)
            .map(|package| package.version.as_str())
            .collect()
    }

    /// For every package that `member` stands on at run time: a shortest way there, both ends included.
    pub(super) fn ways_from(&self, member: &str) -> Vec<Vec<&str>> {
        let start = self.normal.keys().find(|package| package.name == member);
        let mut seen: BTreeSet<&Package> = start.into_iter().collect();
        let mut frontier: Vec<(&Package, Vec<&str>)> =
            start.map(|package| (package, vec![package.name.as_str()])).into_iter().collect();
        let mut ways = Vec::new();
        while !frontier.is_empty() {
            let mut next = Vec::new();
            for (package, way) in frontier {
                for need in self.normal.get(package).into_iter().flatten() {
                    if seen.insert(need) {
                        let mut longer = way.clone();
                        longer.push(&need.name);
                        ways.push(longer.clone());
                        next.push((need, longer));
                    }
                }
            }
            frontier = next;
        }
        ways
    }
}

fn normal_dependencies(node: &Node) -> impl Iterator<Item = &PackageId> {
    node.deps
        .iter()
        .filter(|dependency| dependency.dep_kinds.iter().any(|info| info.kind == DependencyKind::Normal))
        .map(|dependency| &dependency.pkg)
}

#[cfg(test)]
impl Graph {
    /// A workspace of crates that declare nothing.
    pub(super) fn of_members(names: &[&str]) -> Self {
        Self { members: names.iter().map(|&name| name.to_owned()).collect(), ..Self::default() }
    }

    pub(super) fn declare(mut self, kind: DependencyKind, from: &str, to: &str) -> Self {
        self.declared.push(Declared { from: from.to_owned(), to: to.to_owned(), kind });
        self
    }

    /// Adds an arrow between resolved packages, each written `name version`.
    pub(super) fn resolve(mut self, from: &str, to: &str) -> Self {
        let package = |text: &str| {
            let (name, version) = text.split_once(' ').unwrap_or((text, "1.0.0"));
            Package { name: name.to_owned(), version: version.to_owned(), license: Some("MIT".to_owned()) }
        };
        self.normal.entry(package(to)).or_default();
        self.normal.entry(package(from)).or_default().push(package(to));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_shortest_and_end_even_in_a_circle() {
        let graph = Graph::default().resolve("a", "b").resolve("b", "c").resolve("c", "b").resolve("a", "c");
        assert_eq!(graph.ways_from("a"), [vec!["a", "b"], vec!["a", "c"]]);
        assert!(graph.ways_from("unknown").is_empty());
    }

    #[test]
    fn external_packages_are_those_that_are_no_members() {
        let graph = Graph::of_members(&["a"]).resolve("a", "serde 1.0.0");
        let external: Vec<String> = graph.external().map(Package::to_string).collect();
        assert_eq!(external, ["serde 1.0.0"]);
    }
}
