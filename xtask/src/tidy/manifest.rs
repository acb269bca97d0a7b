//! A reader for manifests: cargo metadata tells what a manifest means, but not whether it inherits it.
//!
//! It knows the part of TOML that manifests are written in (no multi-line strings, no dates), which spares xtask
//! a TOML parser.

use std::collections::BTreeMap;

/// A manifest as a flat map: `[package]`, `version.workspace = true` and `version = { workspace = true }` are
/// both `package`, `version`, `workspace` with the value `true`.
#[derive(Debug, Default)]
pub(super) struct Manifest(BTreeMap<Vec<String>, String>);

impl Manifest {
    pub(super) fn parse(text: &str) -> Self {
        let mut manifest = Self::default();
        let mut table = Vec::new();
        for line in logical_lines(text) {
            if let Some(header) = line.strip_prefix('[') {
                table = split_key(header.trim_matches(['[', ']']));
            } else if let Some((key, value)) = split_once_outside(&line, '=') {
                manifest.insert(&table, key, value);
            }
        }
        manifest
    }

    pub(super) fn get(&self, path: &[&str]) -> Option<&str> {
        let path: Vec<String> = path.iter().map(|&key| key.to_owned()).collect();
        self.0.get(&path).map(String::as_str)
    }

    /// Every table of dependencies, with the keys of every dependency in it.
    pub(super) fn dependencies(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut dependencies: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for path in self.0.keys() {
            // `[target.'cfg(…)'.dependencies]` is one too.
            let inner = match path.as_slice() {
                [target, _, inner @ ..] if target == "target" => inner,
                all => all,
            };
            if let [table, name, rest @ ..] = inner
                && table.ends_with("dependencies")
            {
                let keys = dependencies.entry(name).or_default();
                keys.extend(rest.first().map(String::as_str));
            }
        }
        dependencies
    }

    fn insert(&mut self, table: &[String], key: &str, value: &str) {
        let mut path = table.to_vec();
        path.extend(split_key(key));
        let value = value.trim();
        let inline = value.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        let Some(inline) = inline else {
            self.0.insert(path, value.to_owned());
            return;
        };
        for pair in split_outside(inline, ',') {
            if let Some((key, value)) = split_once_outside(pair, '=') {
                self.insert(&path, key, value);
            }
        }
    }
}

/// Lines without comments; a value over several lines becomes one.
fn logical_lines(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut open = String::new();
    for line in text.lines() {
        open += split_outside(line, '#').first().unwrap_or(&"").trim();
        if depth_after(&open) == 0 && !open.is_empty() {
            lines.push(std::mem::take(&mut open));
        }
    }
    lines
}

/// `a."b.c"` as `a` and `b.c`.
fn split_key(key: &str) -> Vec<String> {
    split_outside(key, '.').into_iter().map(|part| part.trim().trim_matches(['"', '\'']).to_owned()).collect()
}

fn split_once_outside(text: &str, separator: char) -> Option<(&str, &str)> {
    let first = split_outside(text, separator).first()?.len();
    Some((&text[..first], text[first..].strip_prefix(separator)?))
}

/// Splits where the separator stands neither in a string nor in brackets.
fn split_outside(text: &str, separator: char) -> Vec<&str> {
    let mut scanner = Scanner::default();
    let mut parts = Vec::new();
    let mut start = 0;
    for (index, c) in text.char_indices() {
        scanner.step(c);
        if c == separator && scanner.is_outside() {
            parts.push(&text[start..index]);
            start = index + c.len_utf8();
        }
    }
    parts.push(&text[start..]);
    parts
}

fn depth_after(text: &str) -> i32 {
    let mut scanner = Scanner::default();
    text.chars().for_each(|c| scanner.step(c));
    scanner.depth
}

/// Follows strings and brackets. (A `\"` in a string is not known to it; no manifest of ours needs one.)
#[derive(Default)]
struct Scanner {
    quote: Option<char>,
    depth: i32,
}

impl Scanner {
    fn step(&mut self, c: char) {
        match (self.quote, c) {
            (Some(quote), c) if c == quote => self.quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => self.quote = Some(c),
            (None, '[' | '{') => self.depth += 1,
            (None, ']' | '}') => self.depth -= 1,
            (None, _) => {}
        }
    }

    fn is_outside(&self) -> bool {
        self.quote.is_none() && self.depth == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
[package] # the crate
name = "a#b = c" # not the end
version.workspace = true

[dependencies]
arrow = { workspace = true, features = [
  "csv", # for tests
  "json",
] }
serde = "1"

[dev-dependencies.tempfile]
workspace = true

[target.'cfg(unix)'.dependencies]
libc.version = "0.2"
"#;

    #[test]
    fn strings_comments_and_several_lines_are_understood() {
        let manifest = Manifest::parse(TEXT);
        assert_eq!(manifest.get(&["package", "name"]), Some("\"a#b = c\""));
        assert_eq!(manifest.get(&["package", "version", "workspace"]), Some("true"));
        assert_eq!(manifest.get(&["dependencies", "arrow", "features"]), Some("[\"csv\",\"json\",]"));
    }

    #[test]
    fn dependencies_are_found_in_every_notation() {
        let manifest = Manifest::parse(TEXT);
        let expected = [
            ("arrow", vec!["features", "workspace"]),
            ("libc", vec!["version"]),
            ("serde", vec![]),
            ("tempfile", vec!["workspace"]),
        ];
        assert_eq!(manifest.dependencies(), BTreeMap::from(expected));
    }
}
