//! What must not be in a source file, whatever compilers say to it.

use super::Finding;
use super::files::{SIZE_LIMIT, SourceFile};

/// Macros that mark unfinished work. (Clippy finds them in code; here they are found in macros and doc examples.)
const UNFINISHED: &[&str] = &[concat!("to", "do!("), concat!("unimpl", "emented!("), concat!("db", "g!(")];

/// A lint that points at a missing type: it is not to be silenced.
const NOT_SILENCED: &str = concat!("clippy::too_many", "_arguments");

/// Directories of the machine that something was written on. They are put together here, like the other needles,
/// so that tidy does not find itself.
const MACHINE_PATHS: &[&str] = &[concat!("/", "work/"), concat!("/", "root/")];

const TO_DO: &str = concat!("TO", "DO");

/// Files that programs write for programs: their white space is not ours to choose.
const DATA: &[&str] = &["csv", "json", "ndjson", "lock", "crc"];

pub(super) fn check(files: &[SourceFile]) -> Vec<Finding> {
    files.iter().flat_map(check_file).collect()
}

fn check_file(file: &SourceFile) -> Vec<Finding> {
    let mut findings: Vec<Finding> = check_size(file).into_iter().collect();
    findings.extend(check_end(file));
    for (index, line) in file.lines() {
        let wrong = [
            find_unfinished(file, line),
            find_silenced_lint(file, line),
            find_bare_to_do(file, line),
            find_machine_path(line),
            find_trailing_space(file, line),
        ];
        findings.extend(wrong.into_iter().flatten().map(|what| Finding::on_line(file, index, what)));
    }
    findings
}

fn check_size(file: &SourceFile) -> Option<Finding> {
    let mebibytes = SIZE_LIMIT / 1024 / 1024;
    (file.bytes > SIZE_LIMIT).then(|| Finding::violation(&file.path, format_args!("is over {mebibytes} MiB")))
}

fn check_end(file: &SourceFile) -> Option<Finding> {
    let text = file.text.as_deref()?;
    let ends_well = text.is_empty() || text.ends_with('\n') || is_data(file);
    (!ends_well).then(|| Finding::violation(&file.path, "does not end with a newline"))
}

fn find_unfinished(file: &SourceFile, line: &str) -> Option<String> {
    if !(file.is_rust() && file.is_in_crates()) {
        return None;
    }
    let found = UNFINISHED.iter().find(|needle| contains_word(line, needle))?;
    Some(format!("`{found}…)` is unfinished work"))
}

fn find_silenced_lint(file: &SourceFile, line: &str) -> Option<String> {
    let silenced = file.is_rust()
        && file.is_in_crates()
        && line.contains(NOT_SILENCED)
        && (line.contains("allow(") || line.contains("expect("));
    silenced.then(|| format!("{NOT_SILENCED} is not silenced: group the parameters into a type"))
}

/// A to-do in a comment must say what is missing, after a colon. It may name someone in brackets.
fn find_bare_to_do(file: &SourceFile, line: &str) -> Option<String> {
    let comment = match file.path.rsplit('.').next() {
        Some("rs") => "//",
        Some("toml" | "yml" | "yaml") => "#",
        Some("sql") => "--",
        _ => return None,
    };
    let (_, said) = line.split_once(comment)?;
    let (_, rest) = said.split_once(TO_DO)?;
    let rest = match rest.strip_prefix('(') {
        Some(name) => name.split_once(')')?.1,
        None => rest,
    };
    let explained = rest.strip_prefix(':').is_some_and(|why| !why.trim().is_empty());
    (!explained).then(|| format!("{TO_DO} does not say what is missing (`{TO_DO}: …`)"))
}

fn find_machine_path(line: &str) -> Option<String> {
    let found = MACHINE_PATHS.iter().find(|needle| {
        line.match_indices(**needle).any(|(at, _)| {
            // After a name it is the inside of a longer path, which may be anywhere.
            let before = line[..at].chars().next_back();
            !before.is_some_and(|c| c.is_alphanumeric() || "._-~}".contains(c))
        })
    })?;
    Some(format!("`{found}` is a path on one machine"))
}

fn find_trailing_space(file: &SourceFile, line: &str) -> Option<String> {
    (line.ends_with(char::is_whitespace) && !is_data(file)).then(|| "has trailing white space".to_owned())
}

fn is_data(file: &SourceFile) -> bool {
    DATA.iter().any(|extension| file.has_extension(extension))
}

/// Whether the needle stands at the beginning of a word.
fn contains_word(line: &str, needle: &str) -> bool {
    line.match_indices(needle).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::super::texts;
    use super::*;

    fn findings_in(path: &str, text: &str) -> Vec<String> {
        texts(check_file(&SourceFile::fake(path, text)))
    }

    #[test]
    fn unfinished_work_fails_in_crates_only() {
        for needle in UNFINISHED {
            let text = format!("fn f() {{\n    {needle})\n}}\n");
            let found = findings_in("crates/a/src/lib.rs", &text);
            assert!(found[0].starts_with("violation  crates/a/src/lib.rs:2: "), "{found:?}");
            assert!(findings_in("docs/style.md", &text).is_empty());
        }
        let other = format!("my_{})\n", UNFINISHED[0]);
        assert!(findings_in("crates/a/src/lib.rs", &other).is_empty());
    }

    #[test]
    fn the_lint_for_long_parameter_lists_cannot_be_silenced() {
        for attribute in ["allow", "expect"] {
            let text = format!("#[{attribute}({NOT_SILENCED})]\n");
            assert_eq!(findings_in("crates/a/src/lib.rs", &text).len(), 1);
        }
        let speaks_of_it = format!("// {NOT_SILENCED} is on.\n");
        assert!(findings_in("crates/a/src/lib.rs", &speaks_of_it).is_empty());
    }

    #[test]
    fn a_to_do_must_say_what_is_missing() {
        for bad in ["", ":", ": ", " later", "(me)"] {
            let text = format!("// {TO_DO}{bad}").trim_end().to_owned() + "\n";
            assert_eq!(findings_in("crates/a/src/lib.rs", &text).len(), 1, "{text}");
        }
        for good in [": merge two chunks", "(me): merge two chunks"] {
            let text = format!("// {TO_DO}{good}\n");
            assert!(findings_in("crates/a/src/lib.rs", &text).is_empty(), "{text}");
        }
        let in_code = format!("let name = \"{TO_DO}\";\n");
        assert!(findings_in("crates/a/src/lib.rs", &in_code).is_empty());
    }

    #[test]
    fn a_path_of_one_machine_fails_in_any_text() {
        for path in MACHINE_PATHS {
            let absolute = format!("open {path}data.csv\n");
            assert_eq!(findings_in("README.md", &absolute).len(), 1);
            let url = format!("file://{path}data.csv\n");
            assert_eq!(findings_in("README.md", &url).len(), 1);
            let relative = format!("open target{path}data.csv\n");
            assert!(findings_in("README.md", &relative).is_empty());
        }
    }

    #[test]
    fn white_space_is_checked_in_what_people_write() {
        assert_eq!(
            findings_in("README.md", "one \ntwo\r\nthree"),
            [
                "violation  README.md: does not end with a newline",
                "violation  README.md:1: has trailing white space",
                "violation  README.md:2: has trailing white space",
            ]
        );
        assert!(findings_in("examples/data/a.csv", "one \r\ntwo").is_empty());
        assert!(findings_in("empty.md", "").is_empty());
    }

    #[test]
    fn a_large_file_fails() {
        let file =
            SourceFile { path: "examples/data/big.parquet".to_owned(), bytes: SIZE_LIMIT + 1, text: None };
        assert_eq!(texts(check_file(&file)), ["violation  examples/data/big.parquet: is over 5 MiB"]);
    }
}
