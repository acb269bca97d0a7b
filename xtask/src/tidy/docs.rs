//! The documentation speaks of what is there: each crate, each linked file.

use std::collections::BTreeSet;
use std::path::Path;

use super::Finding;
use super::files::SourceFile;

const ARCHITECTURE: &str = "docs/architecture.md";

pub(super) fn check(
    files: &[SourceFile],
    members: &BTreeSet<String>,
    exists: impl Fn(&str) -> bool,
) -> Vec<Finding> {
    let architecture =
        files.iter().find(|file| file.path == ARCHITECTURE).and_then(|file| file.text.as_deref());
    let mut findings = check_crate_docs(files);
    findings.extend(check_architecture(architecture, members));
    for file in files.iter().filter(|file| file.has_extension("md")) {
        findings.extend(check_links(file, &exists));
    }
    findings
}

/// A crate begins by saying what it is for.
fn check_crate_docs(files: &[SourceFile]) -> Vec<Finding> {
    files
        .iter()
        .filter(|file| file.path.ends_with("/src/lib.rs") || file.path.ends_with("/src/main.rs"))
        .filter(|file| !file.text.as_deref().unwrap_or_default().starts_with("//!"))
        .map(|file| Finding::violation(&file.path, "does not start with `//!` docs"))
        .collect()
}

fn check_architecture(text: Option<&str>, members: &BTreeSet<String>) -> Vec<Finding> {
    let Some(text) = text else {
        return vec![Finding::violation(ARCHITECTURE, "is missing")];
    };
    let is_part_of_name = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    let words: BTreeSet<&str> = text.split(|c| !is_part_of_name(c)).collect();
    members
        .iter()
        .filter(|member| !words.contains(member.as_str()))
        .map(|member| Finding::violation(ARCHITECTURE, format_args!("does not mention {member}")))
        .collect()
}

/// A relative link leads to a file.
fn check_links(file: &SourceFile, exists: impl Fn(&str) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut in_code_block = false;
    for (index, line) in file.lines() {
        if line.trim_start().starts_with("```") {
            in_code_block = !in_code_block;
        } else if !in_code_block {
            for target in link_targets(&without_code_spans(line)) {
                if path_of(&file.path, &target).is_some_and(|path| !exists(&path)) {
                    let what = format_args!("the link {target} leads nowhere").to_string();
                    findings.push(Finding::on_line(file, index, what));
                }
            }
        }
    }
    findings
}

/// Every second part between backticks is code.
fn without_code_spans(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

/// What the links on a line lead to: `[…](target)`, `[…]: target`, `src="target"` and `href="target"`.
fn link_targets(line: &str) -> Vec<String> {
    let inline = between(line, "](", ')');
    let html = [between(line, "src=\"", '"'), between(line, "href=\"", '"')].concat();
    let reference = line.strip_prefix('[').and_then(|rest| rest.split_once("]: ")).map(|(_, target)| target);
    inline
        .into_iter()
        .chain(html)
        .chain(reference)
        // A title may follow the target.
        .filter_map(|target| target.split_whitespace().next())
        .map(|target| target.trim_matches(['<', '>']).to_owned())
        .collect()
}

fn between<'a>(line: &'a str, start: &str, end: char) -> Vec<&'a str> {
    line.split(start).skip(1).filter_map(|rest| rest.split(end).next()).collect()
}

/// The path from the root that a link on a page means, unless it leads to another site or place on the page.
fn path_of(page: &str, target: &str) -> Option<String> {
    let target = target.split('#').next().filter(|path| !path.is_empty())?;
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    if let Some(from_root) = target.strip_prefix('/') {
        return Some(from_root.to_owned());
    }
    let folder = Path::new(page).parent().unwrap_or(Path::new(""));
    Some(folder.join(target).to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::super::texts;
    use super::*;

    fn members(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn a_crate_without_docs_fails() {
        let files = [
            SourceFile::fake("crates/a/src/lib.rs", "//! Window math.\n"),
            SourceFile::fake("crates/b/src/main.rs", "fn main() {}\n"),
            SourceFile::fake("crates/a/src/parts.rs", "struct A;\n"),
        ];
        assert_eq!(
            texts(check_crate_docs(&files)),
            ["violation  crates/b/src/main.rs: does not start with `//!` docs"]
        );
    }

    #[test]
    fn the_architecture_page_names_every_crate_in_full() {
        let members = members(&["windrow", "windrow-time"]);
        let both = Some("`windrow-time` and the facade, `windrow`.");
        assert_eq!(check_architecture(both, &members), []);
        assert_eq!(
            texts(check_architecture(Some("Only windrow-time."), &members)),
            ["violation  docs/architecture.md: does not mention windrow"]
        );
        assert_eq!(
            texts(check_architecture(None, &members)),
            ["violation  docs/architecture.md: is missing"]
        );
    }

    #[test]
    fn a_link_that_leads_nowhere_fails() {
        let page = SourceFile::fake(
            "docs/guide.md",
            "See [a](architecture.md#layers), [b](../README.md \"title\"), [c](gone.md).\n\
             <img src=\"gone.svg\">\n\
             [ref]: gone/too.md\n",
        );
        let exists = |path: &str| ["docs/architecture.md", "docs/../README.md"].contains(&path);
        assert_eq!(
            texts(check_links(&page, exists)),
            [
                "violation  docs/guide.md:1: the link gone.md leads nowhere",
                "violation  docs/guide.md:2: the link gone.svg leads nowhere",
                "violation  docs/guide.md:3: the link gone/too.md leads nowhere",
            ]
        );
    }

    #[test]
    fn other_sites_anchors_and_code_are_not_looked_up() {
        let page = SourceFile::fake(
            "README.md",
            "[site](https://example.org), [here](#top), [mail](mailto:a@b.c), `a[0](x)`\n\
             ```\n[in code](gone.md)\n```\n",
        );
        assert_eq!(check_links(&page, |_| false), []);
    }
}
