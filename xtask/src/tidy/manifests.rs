//! One place for what all crates have in common: the root manifest, and the LICENSE beside it.

use super::Finding;
use super::files::SourceFile;
use super::manifest::Manifest;

/// Keys of `[package]` that a crate takes from the workspace.
const INHERITED: &[&str] = &["version", "edition", "license"];

/// Sentences from the beginning, the end and the appendix of the Apache License 2.0.
const LICENSE_MARKS: &[&str] = &[
    "Version 2.0, January 2004",
    "END OF TERMS AND CONDITIONS",
    "APPENDIX: How to apply the Apache License to your work.",
];

pub(super) fn check(files: &[SourceFile]) -> Vec<Finding> {
    let manifests = files
        .iter()
        .filter(|file| file.path != "Cargo.toml" && file.path.ends_with("/Cargo.toml"))
        .flat_map(|file| check_manifest(&file.path, file.text.as_deref().unwrap_or_default()));
    let license = files.iter().find(|file| file.path == "LICENSE");
    manifests.chain(check_license(license.and_then(|file| file.text.as_deref()))).collect()
}

fn check_license(text: Option<&str>) -> Option<Finding> {
    let Some(text) = text else {
        return Some(Finding::violation("LICENSE", "is missing"));
    };
    if LICENSE_MARKS.iter().all(|mark| text.contains(mark)) {
        None
    } else {
        Some(Finding::violation("LICENSE", "is not the full Apache License 2.0"))
    }
}

fn check_manifest(path: &str, text: &str) -> Vec<Finding> {
    let manifest = Manifest::parse(text);
    let inherits = |keys: &[&str]| manifest.get(keys) == Some("true");
    let mut findings = Vec::new();

    for key in INHERITED {
        if !inherits(&["package", key, "workspace"]) {
            findings.push(Finding::violation(path, format_args!("lacks `{key}.workspace = true`")));
        }
    }
    if !inherits(&["lints", "workspace"]) {
        findings.push(Finding::violation(path, "lacks `workspace = true` under [lints]"));
    }
    let described = manifest
        .get(&["package", "description"])
        .is_some_and(|description| !description.trim_matches(['"', ' ']).is_empty());
    // xtask is never published, so nobody reads its description.
    if !described && !path.starts_with("xtask/") {
        findings.push(Finding::violation(path, "has no description"));
    }
    for (name, keys) in manifest.dependencies() {
        // A path leads to a crate of this workspace, which may need it: its tests can name the crate itself.
        if !keys.contains(&"workspace") && !keys.contains(&"path") {
            findings.push(Finding::violation(
                path,
                format_args!("take {name} from [workspace.dependencies] with `workspace = true`"),
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::texts;
    use super::*;

    const GOOD: &str = "\
[package]
name = \"windrow-time\"
description = \"Window math.\"
version.workspace = true
edition = { workspace = true }
license.workspace = true

[lints]
workspace = true

[dependencies]
arrow.workspace = true
chrono = { workspace = true, features = [\"std\"] }

[dev-dependencies]
windrow-time = { path = \".\" }
";

    #[test]
    fn a_manifest_that_inherits_passes() {
        assert_eq!(check_manifest("crates/windrow-time/Cargo.toml", GOOD), []);
    }

    #[test]
    fn each_thing_that_is_not_inherited_fails() {
        let bad = "\
[package]
name = \"rogue\"
version = \"0.1.0\"
edition = \"2021\"
description = \"\"

[dependencies]
arrow = \"58\"
serde = { version = \"1\", features = [\"derive\"] }
";
        assert_eq!(
            texts(check_manifest("crates/rogue/Cargo.toml", bad)),
            [
                "violation  crates/rogue/Cargo.toml: lacks `version.workspace = true`",
                "violation  crates/rogue/Cargo.toml: lacks `edition.workspace = true`",
                "violation  crates/rogue/Cargo.toml: lacks `license.workspace = true`",
                "violation  crates/rogue/Cargo.toml: lacks `workspace = true` under [lints]",
                "violation  crates/rogue/Cargo.toml: has no description",
                "violation  crates/rogue/Cargo.toml: take arrow from [workspace.dependencies] with `workspace = true`",
                "violation  crates/rogue/Cargo.toml: take serde from [workspace.dependencies] with `workspace = true`",
            ]
        );
    }

    #[test]
    fn only_xtask_needs_no_description() {
        let text = GOOD.replace("description", "keywords");
        assert_eq!(check_manifest("xtask/Cargo.toml", &text), []);
        assert_eq!(check_manifest("crates/windrow-time/Cargo.toml", &text).len(), 1);
    }

    #[test]
    fn the_licence_must_be_there_and_whole() {
        let marks = LICENSE_MARKS.join("\n");
        assert_eq!(check_license(Some(&marks)), None);
        assert!(check_license(Some("MIT License")).is_some());
        assert!(check_license(None).is_some());
    }
}
