//! A file can be read in one sitting.

use super::Finding;
use super::files::SourceFile;

/// What a file should not exceed, and what it must not. Comments count, for they are read too; tests do not.
const AIM: usize = 400;
const LIMIT: usize = 600;

/// A file of tests is read a test at a time.
const TEST_LIMIT: usize = 1000;

pub(super) fn check(files: &[SourceFile]) -> Vec<Finding> {
    files
        .iter()
        .filter(|file| file.is_rust())
        .filter_map(|file| check_length(&file.path, lines_without_tests(file.text.as_deref()?)))
        .collect()
}

fn check_length(path: &str, length: usize) -> Option<Finding> {
    let (aim, limit) = if is_test(path) { (TEST_LIMIT, TEST_LIMIT) } else { (AIM, LIMIT) };
    if length > limit {
        let what = format_args!("{length} lines without its tests; the limit is {limit}").to_string();
        Some(Finding::violation(path, what))
    } else if length > aim {
        let what = format_args!("{length} lines without its tests; the aim is {aim}").to_string();
        Some(Finding::note(path, what))
    } else {
        None
    }
}

fn is_test(path: &str) -> bool {
    path.split('/').any(|part| part == "tests" || part == "tests.rs")
}

/// The number of lines before a `#[cfg(test)] mod tests { … }` that ends the file.
fn lines_without_tests(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let tests =
        lines.windows(2).rposition(|pair| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod tests {"));
    match tests {
        Some(start) if ends_the_file(&lines[start..]) => start,
        _ => lines.len(),
    }
}

/// Whether nothing follows the block: rustfmt puts its closing brace, and none before it, at the left edge.
fn ends_the_file(block: &[&str]) -> bool {
    let closing = block.iter().position(|line| *line == "}");
    closing.is_some_and(|end| block[end + 1..].iter().all(|line| line.trim().is_empty()))
}

#[cfg(test)]
mod tests {
    use super::super::texts;
    use super::*;

    const TESTS: &str = "#[cfg(test)]\nmod tests {\n    #[test]\n    fn works() {\n    }\n}\n";

    fn code(lines: usize) -> String {
        "let a = 1;\n".repeat(lines)
    }

    #[test]
    fn long_files_are_noted_and_longer_ones_fail() {
        let files = [
            SourceFile::fake("crates/a/src/short.rs", &code(400)),
            SourceFile::fake("crates/a/src/long.rs", &code(401)),
            SourceFile::fake("crates/a/src/longer.rs", &code(601)),
            SourceFile::fake("docs/guide.md", &code(5000)),
        ];
        assert_eq!(
            texts(check(&files)),
            [
                "note       crates/a/src/long.rs: 401 lines without its tests; the aim is 400",
                "violation  crates/a/src/longer.rs: 601 lines without its tests; the limit is 600",
            ]
        );
    }

    #[test]
    fn tests_may_be_longer_but_not_endless() {
        assert_eq!(check_length("crates/a/tests/sql.rs", 1000), None);
        assert_eq!(check_length("crates/a/src/flow/tests.rs", 1000), None);
        assert!(check_length("crates/a/tests/sql.rs", 1001).is_some_and(|it| it.is_violation()));
    }

    #[test]
    fn only_tests_that_end_the_file_are_not_counted() {
        assert_eq!(lines_without_tests(&format!("{}{TESTS}", code(10))), 10);
        assert_eq!(lines_without_tests(&format!("{TESTS}{}", code(10))), 16);
        assert_eq!(lines_without_tests(&code(10)), 10);
    }
}
